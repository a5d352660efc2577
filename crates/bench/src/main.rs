//! Benchmarks: Tollgate compared with its peers, interleaved in one run, as one table of ratios and counts.
//!
//! A ratio of two interleaved programs is stable on a noisy machine; a time is not. Where even the ratio is too noisy, the
//! row counts instructions or bytes.
//!
//! To add a row, write it in `rows/`; to add a subject to a row, give it one closure. [`subject`] shows how.
#![allow(clippy::print_stdout, reason = "the table is what the program is for")]

mod batches;
mod command;
mod comparison;
mod entities;
mod files;
mod footprint;
mod idle;
mod instructions;
mod json;
mod keys;
mod many_buckets;
mod meter;
mod options;
mod peers;
mod processes;
mod python;
mod refused_calls;
mod result;
mod rows;
mod scratch;
mod servers;
mod single;
mod slow_down;
mod subject;
mod subjects;
mod table;
mod tables;
mod threaded;
mod viewing;
mod wake;

use std::process::ExitCode;

use anyhow::{Context, Result};

use options::{BenchOptions, BenchRequest};
use result::BenchResult;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let request = match options::parse(&arguments) {
        Ok(request) => request,
        Err(why) => {
            eprintln!("tollgate-bench: {why}\nTry `tollgate-bench --help`.");
            return ExitCode::from(2);
        }
    };
    answer(request).unwrap_or_else(|error| {
        eprintln!("tollgate-bench: {error:#}");
        ExitCode::FAILURE
    })
}

fn answer(request: BenchRequest) -> Result<ExitCode> {
    match request {
        BenchRequest::Help => print!("{}", options::HELP),
        BenchRequest::List => {
            for row in rows::all() {
                println!("{}", row.name());
            }
        }
        BenchRequest::Count { target, times } => instructions::count_here(&target, times)?,
        BenchRequest::Process { what, name } => processes::work_here(&what, &name)?,
        BenchRequest::Resident { target, keys } => footprint::measure_here(&target, keys)?,
        BenchRequest::Run(options) => return run(&options),
    }
    Ok(ExitCode::SUCCESS)
}

fn run(options: &BenchOptions) -> Result<ExitCode> {
    let mut findings = Vec::new();
    for row in rows::all().iter().filter(|row| row.name().starts_with(&options.only)) {
        eprintln!("measuring {}", row.name());
        // A row that cannot be measured must not end the run.
        findings.push(
            row.measure(&options.effort).unwrap_or_else(|error| BenchResult::failed(row.name(), &error)),
        );
    }
    print!("{}", table::render(&findings));
    if let Some(path) = &options.json {
        std::fs::write(path, json::render(&findings)).with_context(|| format!("cannot write {path}"))?;
    }
    let good = findings.iter().all(BenchResult::passes);
    Ok(if good || !options.check { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
