//! Points: places where another thread may come in between, for rigs that choose who runs.
//!
//! Always: a point stands before each look at what threads share without waiting, so that with the waits and disk calls
//! every interleaving of a protocol can be had. Without the feature `testing` there are none.

#[cfg(not(feature = "testing"))]
pub(crate) const fn point() {}

#[cfg(feature = "testing")]
thread_local! {
    static HOOK: std::cell::Cell<Option<fn()>> = const { std::cell::Cell::new(None) };
}

/// Calls what [`at_points`] has set for this thread. A thread that unwinds is not interrupted.
#[cfg(feature = "testing")]
pub(crate) fn point() {
    if let Some(hook) = HOOK.get()
        && !std::thread::panicking()
    {
        hook();
    }
}

/// Calls `run`, and `hook` at each point that this thread comes to meanwhile.
#[cfg(feature = "testing")]
pub fn at_points<T>(hook: fn(), run: impl FnOnce() -> T) -> T {
    struct Before(Option<fn()>);
    impl Drop for Before {
        fn drop(&mut self) {
            HOOK.set(self.0);
        }
    }
    let _before = Before(HOOK.replace(Some(hook)));
    run()
}
