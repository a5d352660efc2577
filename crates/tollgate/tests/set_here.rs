//! Limit sets in this process.

tollgate_conformance::set_suite!(here);
