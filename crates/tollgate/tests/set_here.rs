//! Limit sets in this process.

tollgate::set_suite!(here);
