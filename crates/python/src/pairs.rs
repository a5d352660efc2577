//! Pairs of methods: `x` waits in the thread, `x_async` returns an awaitable of the same operation.

/// Defines both methods of each pair. The body makes the operation, and checks the arguments before anything is begun.
macro_rules! pairs {
    ($class:ident, $shown:literal: $(
        $(#[doc = $doc:literal])+
        fn $name:ident, $twin:ident $signature:tt ($slf:ident $(, $($arguments:tt)*)?) $body:block
    )+) => {
        #[pyo3::pymethods]
        #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
        impl $class {
            $(
                $(#[doc = $doc])+
                #[pyo3(signature = $signature)]
                fn $name($slf: &pyo3::Bound<'_, Self> $(, $($arguments)*)?) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> {
                    let operation: $crate::wait::PendingOp = $body;
                    $crate::wait::thread::run($slf.py(), operation, $slf.get().first_poll())
                }

                #[doc = concat!("As `", stringify!($name), "`, in an event loop.")]
                #[pyo3(signature = $signature)]
                fn $twin($slf: &pyo3::Bound<'_, Self> $(, $($arguments)*)?) -> pyo3::PyResult<$crate::wait::pending::Pending> {
                    let operation: $crate::wait::PendingOp = $body;
                    let name = concat!($shown, ".", stringify!($twin));
                    Ok($crate::wait::pending::Pending::of(name, operation, $slf.get().first_poll()))
                }
            )+
        }
    };
}

pub(crate) use pairs;
