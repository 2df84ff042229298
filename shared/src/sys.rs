//! The only unsafe code of the project: what the kernel offers and no safe crate wraps as we need it.
//!
//! Everything here is Linux. The calls between fork and exec are async-signal-safe and allocate nothing.
#![expect(
    unsafe_code,
    reason = "fork, exec, waitid with usage, queued signals and argv have no safe wrapper; each block says why it holds"
)]

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction, signal};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

/// The signal of a request to stop (CONTRACT.md §6). The number, since SIGRTMIN differs between C libraries.
pub const REQUEST: c_int = 40;

// ---------------------------------------------------------------------------------------------------
// What only the first instant of a process knows
// ---------------------------------------------------------------------------------------------------

static ARGC: AtomicUsize = AtomicUsize::new(0);
static ARGV: AtomicPtr<*mut c_char> = AtomicPtr::new(std::ptr::null_mut());
static AT_START: AtomicU8 = AtomicU8::new(0);
const SIGPIPE_IGNORED: u8 = 1 << 3;

/// Runs before Rust's runtime, which ignores SIGPIPE and opens /dev/null in place of a closed 0, 1 or 2.
extern "C" fn at_start(argc: c_int, argv: *mut *mut c_char, _envp: *mut *mut c_char) {
    ARGC.store(usize::try_from(argc).unwrap_or(0), Ordering::Relaxed);
    ARGV.store(argv, Ordering::Relaxed);
    let mut seen = 0;
    for fd in 0..3 {
        // SAFETY: F_GETFD touches no memory; a closed descriptor is an error, which is the question.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            seen |= 1 << fd;
        }
    }
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only reads; `old` is a valid place for the answer, zeroed before.
    let ignored = unsafe {
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), old.as_mut_ptr()) == 0
            && old.assume_init().sa_sigaction == libc::SIG_IGN
    };
    if ignored {
        seen |= SIGPIPE_IGNORED;
    }
    AT_START.store(seen, Ordering::Relaxed);
}

#[used]
// SAFETY: the C library calls each function of .init_array with (argc, argv, envp) on Linux (glibc and musl);
// `at_start` has that signature, allocates nothing and cannot unwind.
#[unsafe(link_section = ".init_array")]
static INIT: extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = at_start;

/// Whether this standard descriptor (0, 1, 2) was closed when the process began.
pub fn was_closed(fd: RawFd) -> bool {
    (0..3).contains(&fd) && AT_START.load(Ordering::Relaxed) & (1 << fd) != 0
}

/// Whether SIGPIPE was ignored when the process began.
pub fn sigpipe_was_ignored() -> bool {
    AT_START.load(Ordering::Relaxed) & SIGPIPE_IGNORED != 0
}

/// Overwrites the command line that others see in /proc, so that no pattern of theirs meets what this
/// process was called with. The text is cut to the room there is. Nobody may read the arguments through
/// `std::env::args` afterwards.
pub fn set_title(text: &str) {
    let (argc, argv) = (ARGC.load(Ordering::Relaxed), ARGV.load(Ordering::Relaxed));
    if argc == 0 || argv.is_null() {
        return;
    }
    // SAFETY: the kernel lays the arguments out one after the other in memory that stays writable for the
    // process's life; argv[0] and argv[argc - 1] are NUL-terminated strings in it. No thread runs beside us.
    unsafe {
        let (first, last) = (*argv, *argv.add(argc - 1));
        if first.is_null() || last.is_null() || last < first {
            return;
        }
        let end = last.add(CStr::from_ptr(last).to_bytes_with_nul().len());
        let Ok(room) = usize::try_from(end.offset_from(first)) else { return };
        std::ptr::write_bytes(first, 0, room);
        // The last byte stays NUL: otherwise the kernel goes on reading in the environment.
        let keep = text.len().min(room.saturating_sub(1));
        std::ptr::copy_nonoverlapping(text.as_ptr().cast::<c_char>(), first, keep);
    }
}

// ---------------------------------------------------------------------------------------------------
// Signals
// ---------------------------------------------------------------------------------------------------

/// Gives SIGCHLD its default disposition: a parent that ignores it would make every wait say ECHILD
/// (signal(7), "SIGCHLD").
pub fn default_sigchld() {
    // SAFETY: SIG_DFL is no handler, so no code of ours can run in signal context.
    let _ = unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) };
}

/// A signal's name (`SIGTERM`, `SIGRTMIN+6`).
pub fn signal_name(signal: i32) -> String {
    match Signal::try_from(signal) {
        Ok(known) => known.as_str().to_owned(),
        // The kernel's first is 32; the C libraries keep two for themselves.
        Err(_) if (34..=64).contains(&signal) => format!("SIGRTMIN+{}", signal - 34),
        Err(_) => format!("signal {signal}"),
    }
}

/// Ignores a signal in this process.
pub fn ignore(which: Signal) {
    // SAFETY: SIG_IGN is no handler, so no code of ours can run in signal context.
    let _ = unsafe { signal(which, SigHandler::SigIgn) };
}

/// Lets a write beyond the file size limit fail with EFBIG instead of ending this process.
pub fn ignore_file_size_signal() {
    ignore(Signal::SIGXFSZ);
}

/// Gives a signal its default disposition in this process.
pub fn default(which: Signal) {
    // SAFETY: SIG_DFL is no handler, so no code of ours can run in signal context.
    let _ = unsafe { signal(which, SigHandler::SigDfl) };
}

/// A repeating alarm that makes a blocking call return EINTR, whatever the caller has blocked. Dropping it stops the
/// timer and gives SIGALRM its former disposition and the thread its former mask.
pub struct Alarm {
    before: Option<SigAction>,
    mask: u64,
}

extern "C" fn nothing(_: c_int) {}

impl Alarm {
    /// An alarm at each of these intervals.
    pub fn every(interval: Duration) -> Alarm {
        let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing at all.
        let before = unsafe { sigaction(Signal::SIGALRM, &action) }.ok();
        let mask = set_mask(libc::SIG_UNBLOCK, kernel_set(&[libc::SIGALRM])).unwrap_or(0);
        set_timer(interval);
        Alarm { before, mask }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        set_timer(Duration::ZERO);
        set_signal_mask(self.mask);
        if let Some(before) = &self.before {
            // SAFETY: it is the disposition that was in force before, put back.
            let _ = unsafe { sigaction(Signal::SIGALRM, before) };
        }
    }
}

fn set_timer(interval: Duration) {
    let value = libc::timeval {
        tv_sec: libc::time_t::try_from(interval.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_usec: interval.subsec_micros().into(),
    };
    let timer = libc::itimerval { it_interval: value, it_value: value };
    // SAFETY: the new value is valid for reading and no old one is asked for.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
}

/// A signal as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its number.
    pub signal: c_int,
    /// The sender's PID as the kernel or the sender gives it.
    pub pid: i32,
    /// The sender's real uid.
    pub uid: u32,
    /// SI_USER, SI_QUEUE, SI_KERNEL, …
    pub code: i32,
    /// The value of a queued signal.
    pub value: i32,
}

/// A descriptor from which signals are read instead of being delivered (signalfd(2)).
#[derive(Debug)]
pub struct SignalFd {
    fd: OwnedFd,
}

fn kernel_set(signals: &[c_int]) -> u64 {
    signals.iter().filter(|s| (1..=64).contains(*s)).fold(0, |set, s| set | 1 << (s - 1))
}

impl SignalFd {
    /// Blocks these signals (numbers 1 to 64) in this thread and reads them from a descriptor from now on.
    ///
    /// # Errors
    /// As signalfd4(2).
    pub fn block(signals: &[c_int]) -> io::Result<SignalFd> {
        let set = kernel_set(signals);
        set_mask(libc::SIG_BLOCK, set)?;
        // The system call and not the C library's: its sigset_t refuses the numbers that it keeps for itself.
        // SAFETY: `set` is 8 bytes as the size says; the flags ask for a new descriptor.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_signalfd4,
                -1,
                &raw const set,
                size_of::<u64>(),
                libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
        Ok(SignalFd { fd: unsafe { OwnedFd::from_raw_fd(RawFd::try_from(fd).unwrap_or(-1)) } })
    }

    /// The descriptor, for poll(2).
    pub fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.fd.as_fd()
    }

    /// The next signal that has arrived; `None` when there is none.
    pub fn next(&self) -> Option<Arrived> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer is as large as the size given; the kernel writes whole records.
        let n = unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast::<c_void>(), size) };
        if usize::try_from(n) != Ok(size) {
            return None;
        }
        // SAFETY: plain integers, zeroed before and filled by the kernel.
        let info = unsafe { info.assume_init() };
        Some(Arrived {
            signal: c_int::try_from(info.ssi_signo).unwrap_or(0),
            pid: i32::try_from(info.ssi_pid).unwrap_or(0),
            uid: info.ssi_uid,
            code: info.ssi_code,
            value: info.ssi_int,
        })
    }
}

fn set_mask(how: c_int, set: u64) -> io::Result<u64> {
    let mut old = 0u64;
    // SAFETY: both sets are 8 bytes, as the size says (rt_sigprocmask(2)).
    let done = unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const set, &raw mut old, size_of::<u64>())
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(old) }
}

/// Blocks every signal in this thread; returns what was blocked before.
pub fn block_all() -> u64 {
    set_mask(libc::SIG_SETMASK, u64::MAX).unwrap_or(0)
}

/// A set of signals, bit N - 1 for signal N.
pub fn set_of(signals: &[c_int]) -> u64 {
    kernel_set(signals)
}

/// This thread's signal mask, bit N - 1 for signal N.
pub fn signal_mask() -> u64 {
    set_mask(libc::SIG_BLOCK, 0).unwrap_or(0)
}

/// Sets this thread's signal mask.
pub fn set_signal_mask(mask: u64) {
    let _ = set_mask(libc::SIG_SETMASK, mask);
}

/// Sends a signal through a pidfd (pidfd_send_signal(2)), any number from 0 to 64.
///
/// # Errors
/// ESRCH when the process is gone, EPERM when it is not ours to signal.
pub fn signal_pidfd(pidfd: BorrowedFd<'_>, signal: c_int) -> io::Result<()> {
    // SAFETY: a null siginfo is allowed; no memory is touched.
    let done = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, std::ptr::null::<c_void>(), 0)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Queues [`REQUEST`] with a value through a pidfd, in the name of this PID and uid: the kernel lets the sender
/// of a queued signal say who asks.
///
/// # Errors
/// As [`signal_pidfd`], and EAGAIN when the receiver's queue is full.
pub fn queue_pidfd(pidfd: BorrowedFd<'_>, value: i32, (pid, uid): (i32, u32)) -> io::Result<()> {
    /// The beginning of the kernel's siginfo_t for a queued signal, padded to its 128 bytes.
    #[repr(C)]
    struct Queued {
        signo: c_int,
        errno: c_int,
        code: c_int,
        #[cfg(target_pointer_width = "64")]
        pad: c_int,
        pid: c_int,
        uid: u32,
        value: usize,
        rest: [u8; 96],
    }
    let info = Queued {
        signo: REQUEST,
        errno: 0,
        code: libc::SI_QUEUE,
        #[cfg(target_pointer_width = "64")]
        pad: 0,
        pid,
        uid,
        // sigval is a union of an int and a pointer: the int is at its lowest address on little endian, and
        // the receiver reads the int.
        value: if cfg!(target_endian = "little") {
            value.cast_unsigned() as usize
        } else {
            (value.cast_unsigned() as usize) << (usize::BITS - 32)
        },
        rest: [0; 96],
    };
    const { assert!(size_of::<Queued>() >= 128) };
    // SAFETY: the kernel copies 128 bytes of a siginfo from a structure of at least that size.
    let done =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), REQUEST, &raw const info, 0) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends a signal to a process group (kill(2) with a negative PID). Only for groups whose leader is an
/// unreaped child of the caller: then the number cannot be anybody else's.
///
/// # Errors
/// As kill(2).
pub fn signal_group(pgid: i32, signal: c_int) -> io::Result<()> {
    if pgid <= 1 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: kill touches no memory.
    if unsafe { libc::kill(-pgid, signal) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends a signal to a child that has not been waited for: its number is ours until then.
///
/// # Errors
/// As kill(2).
pub fn signal_child(pid: i32, signal: c_int) -> io::Result<()> {
    if pid <= 1 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: kill touches no memory.
    if unsafe { libc::kill(pid, signal) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has the kernel send this process CONT when a socket or a pipe has news or its other end is closed: a process that
/// somebody has stopped wakes up to see it.
///
/// # Errors
/// As fcntl(2).
pub fn wake_by(other: BorrowedFd<'_>) -> io::Result<()> {
    /// From <asm-generic/fcntl.h>; the libc crate has it for few targets.
    const F_SETSIG: c_int = 10;
    let fd = other.as_raw_fd();
    let done = |result: c_int| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) };
    // SAFETY: none of these touches memory.
    unsafe {
        done(libc::fcntl(fd, libc::F_SETOWN, libc::getpid()))?;
        done(libc::fcntl(fd, F_SETSIG, libc::SIGCONT))?;
        done(libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC))?;
    }
    Ok(())
}

/// Gives back the pages of code and constants that only the beginning needed, in this process and all it has loaded: one
/// that is about to sleep for long need not hold them. What is needed again is read from the file again.
pub fn give_back_code() {
    extern "C" fn give_back(object: *mut libc::dl_phdr_info, _: libc::size_t, _: *mut c_void) -> c_int {
        const PAGE: usize = 4096;
        // SAFETY: the C library calls this with a valid object and its table of segments. A segment that cannot be
        // written to holds what the file holds (relocations go to writable ones), so that dropping its whole pages
        // changes nothing that anybody can read; one that is locked or larger than a page says EINVAL and stays.
        unsafe {
            let Some(object) = object.as_ref().filter(|o| !o.dlpi_phdr.is_null()) else { return 0 };
            let segments = std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum));
            for segment in segments {
                if segment.p_type != libc::PT_LOAD || segment.p_flags & libc::PF_W != 0 {
                    continue;
                }
                let Ok(at) = usize::try_from(object.dlpi_addr + segment.p_vaddr) else { continue };
                let Ok(length) = usize::try_from(segment.p_memsz) else { continue };
                let (first, end) = (at.next_multiple_of(PAGE), (at + length) / PAGE * PAGE);
                if first < end {
                    let first = std::ptr::with_exposed_provenance_mut(first);
                    libc::madvise(first, end - first.addr(), libc::MADV_DONTNEED);
                }
            }
        }
        0
    }
    // SAFETY: the callback has the signature that is asked for, and no thread runs beside us.
    unsafe { libc::dl_iterate_phdr(Some(give_back), std::ptr::null_mut()) };
}

/// Dies of a signal, without leaving a core: how a guard says what its command died of. Returns if the signal does
/// not end a process.
pub fn die_of(signal: c_int) {
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    // SAFETY: SIG_DFL is no handler; raise touches no memory.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
        // Only this one is let through: another that waits to be heard would end us in its own name.
        set_signal_mask(!kernel_set(&[signal]));
    }
}

// ---------------------------------------------------------------------------------------------------
// Numbers as C reads them
// ---------------------------------------------------------------------------------------------------

/// What strtod(3) makes of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    /// The value.
    pub value: f64,
    /// How many bytes were read.
    pub read: usize,
    /// ERANGE: too large, or too near to zero.
    pub out_of_range: bool,
}

/// Reads a number as C does (strtod(3) in the C locale: these programs never set another).
pub fn strtod(text: &CStr) -> Number {
    let mut end: *mut c_char = std::ptr::null_mut();
    // SAFETY: the text is NUL-terminated and `end` a valid place; errno is this thread's own.
    unsafe {
        *libc::__errno_location() = 0;
        let value = libc::strtod(text.as_ptr(), &raw mut end);
        let out_of_range = *libc::__errno_location() == libc::ERANGE;
        let read = usize::try_from(end.cast_const().offset_from(text.as_ptr())).unwrap_or(0);
        Number { value, read, out_of_range }
    }
}

// ---------------------------------------------------------------------------------------------------
// Waiting
// ---------------------------------------------------------------------------------------------------

/// How a process ended, as the kernel says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this status.
    Exit(i32),
    /// It died of this signal; the second says whether it left a core.
    Signal(i32, bool),
}

/// A child that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dead {
    /// Its PID.
    pub pid: i32,
    /// How it ended.
    pub ended: Ended,
    /// User and system time of it and of the children it waited for.
    pub cpu: Duration,
    /// The largest resident set among them, in KiB.
    pub max_rss_kb: u64,
}

/// What a look at the children found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Children {
    /// This one has ended.
    Dead(Dead),
    /// There are some, and none has ended.
    Alive,
    /// There are none (ECHILD).
    None,
}

/// Which children are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Any.
    Any,
    /// The one with this PID.
    Pid(i32),
}

/// Looks at the children, without blocking (waitid(2) with WEXITED, WNOHANG and __WALL); `reap` says whether
/// the one that is found is waited for, which gives its number back.
///
/// # Errors
/// As waitid(2), but for ECHILD, which is an answer.
pub fn look(which: Which, reap: bool) -> io::Result<Children> {
    let (kind, id) = match which {
        Which::Any => (libc::P_ALL, 0),
        Which::Pid(pid) => (libc::P_PID, pid.cast_unsigned()),
    };
    let mut options = libc::WEXITED | libc::WNOHANG | libc::__WALL;
    if !reap {
        options |= libc::WNOWAIT;
    }
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // The system call and not the C library's waitid: only the former gives the usage, and with WNOWAIT too.
    // SAFETY: both places are valid for the kernel to fill and zeroed before.
    let done =
        unsafe { libc::syscall(libc::SYS_waitid, kind, id, info.as_mut_ptr(), options, usage.as_mut_ptr()) };
    if done < 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ECHILD) { Ok(Children::None) } else { Err(error) };
    }
    // SAFETY: plain integers, zeroed before; for a dead child the kernel has filled the SIGCHLD fields.
    let (pid, status, code, usage) = unsafe {
        let info = info.assume_init();
        (info.si_pid(), info.si_status(), info.si_code, usage.assume_init())
    };
    if pid == 0 {
        return Ok(Children::Alive);
    }
    let time = |t: libc::timeval| {
        Duration::new(
            u64::try_from(t.tv_sec).unwrap_or(0),
            u32::try_from(t.tv_usec).unwrap_or(0).saturating_mul(1000),
        )
    };
    Ok(Children::Dead(Dead {
        pid,
        ended: match code {
            libc::CLD_KILLED => Ended::Signal(status, false),
            libc::CLD_DUMPED => Ended::Signal(status, true),
            _ => Ended::Exit(status),
        },
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        max_rss_kb: u64::try_from(usage.ru_maxrss).unwrap_or(0),
    }))
}

/// Waits until this child is dead and was waited for.
///
/// # Errors
/// As waitid(2).
pub fn look_until_dead(pid: i32) -> io::Result<()> {
    loop {
        match nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(pid), None) {
            Ok(_) | Err(nix::errno::Errno::ECHILD) => return Ok(()),
            Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

// ---------------------------------------------------------------------------------------------------
// Fork and exec
// ---------------------------------------------------------------------------------------------------

/// Which side of a fork this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The child.
    Child,
    /// The parent, with the child's PID.
    Parent(i32),
}

/// Forks. The tools never start a thread before they fork, so the child may run any code.
///
/// # Errors
/// As fork(2). Nothing was started then, and nothing may be signalled.
pub fn fork() -> io::Result<Side> {
    // SAFETY: the process has one thread, so no lock can be held by somebody who does not exist in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        pid => Ok(Side::Parent(pid)),
    }
}

/// Closes every descriptor above 2 but these. For a forked copy that never returns to code which owns others:
/// none of what the caller had may be held by somebody who lives longer than the caller.
pub fn close_all_except(keep: &[RawFd]) {
    let mut keep: Vec<u32> =
        keep.iter().filter_map(|&fd| u32::try_from(fd).ok()).filter(|&fd| fd > 2).collect();
    keep.sort_unstable();
    let mut from = 3;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if fd > from {
            close_range(from, fd - 1);
        }
        from = fd.saturating_add(1);
    }
}

fn close_range(first: u32, last: u32) {
    // SAFETY: as the caller promises, nobody uses these descriptors again.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, last, 0) == 0 {
            return;
        }
        // A kernel before 5.9: one by one, as far as descriptors can reach.
        let mut limit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        let last = u64::from(last).min(limit.rlim_cur).min(1 << 20);
        for fd in u64::from(first)..=last {
            libc::close(c_int::try_from(fd).unwrap_or(-1));
        }
    }
}

/// Puts /dev/null in place of all three standard descriptors.
///
/// # Errors
/// When /dev/null cannot be opened.
pub fn null_stdio() -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Ends this process at once, without running anything that was registered for its end: for forked copies.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit never returns and touches no memory of ours.
    unsafe { libc::_exit(code) }
}

/// What the leader starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderSignals {
    /// All dispositions default, an empty mask.
    Default,
    /// This mask; the signals of the second set ignored, all others default.
    Inherited {
        /// The mask, bit N - 1 for signal N.
        mask: u64,
        /// What is ignored, likewise.
        ignored: u64,
    },
}

/// A command made ready so that nothing is left to allocate after the fork.
pub struct Command {
    candidates: Vec<CString>,
    argv: Vec<CString>,
    envp: Vec<CString>,
    /// The standard descriptors; `None` leaves the caller's.
    pub stdio: [Option<RawFd>; 3],
    /// Standard descriptors that are closed in the command, as they were in the caller.
    pub closed: [bool; 3],
    /// Descriptors above 2 that the command may have.
    pub keep: Vec<RawFd>,
    /// Whether it has all descriptors that the caller handed on.
    pub inherit: bool,
    /// Whether it becomes the leader of a session of its own.
    pub new_session: bool,
    /// The process group it joins, if any.
    pub group: Option<i32>,
    /// The signal it gets when its parent dies, if any.
    pub death_signal: Option<c_int>,
    /// Its signals.
    pub signals: LeaderSignals,
    /// Read before exec: a byte lets it go, end of file makes it vanish.
    pub barrier: Option<RawFd>,
    /// Closed first: the far ends of pipes whose end of file has to be seen.
    pub close_first: Vec<RawFd>,
}

impl Command {
    /// A command by its arguments and environment (`K=V`), looked up in `path` as execvp(3) does.
    pub fn new(argv: Vec<CString>, envp: Vec<CString>, path: &[u8]) -> Command {
        let program = argv.first().map(|a| a.as_bytes().to_vec()).unwrap_or_default();
        let mut candidates = Vec::new();
        if program.contains(&b'/') {
            candidates.extend(CString::new(program));
        } else if !program.is_empty() {
            for dir in path.split(|&b| b == b':') {
                // An empty element is the current directory (environ(7)).
                let mut full = if dir.is_empty() { b".".to_vec() } else { dir.to_vec() };
                full.push(b'/');
                full.extend(&program);
                candidates.extend(CString::new(full));
            }
        }
        Command {
            candidates,
            argv,
            envp,
            stdio: [None; 3],
            closed: [false; 3],
            keep: Vec::new(),
            inherit: false,
            new_session: false,
            group: None,
            death_signal: None,
            signals: LeaderSignals::Default,
            barrier: None,
            close_first: Vec::new(),
        }
    }

    /// Forks the command. It reports a failed exec by writing errno (4 bytes, native) to each of `errors`, which
    /// must be close-on-exec: end of file on their other ends means that the command executes.
    ///
    /// # Errors
    /// As fork(2).
    pub fn spawn(&self, errors: &[RawFd]) -> io::Result<i32> {
        let pointers = |list: &[CString]| -> Vec<*const c_char> {
            list.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (argv, envp) = (pointers(&self.argv), pointers(&self.envp));
        // A script without `#!` is given to the shell, as execvp(3) does: sh FILE ARG…
        let mut script = Vec::with_capacity(argv.len() + 2);
        script.push(c"sh".as_ptr());
        script.push(std::ptr::null());
        script.extend(argv.iter().skip(1));
        let parent = std::process::id().cast_signed();
        match fork()? {
            Side::Parent(pid) => Ok(pid),
            Side::Child => {
                // SAFETY: the pointers above live in this copy of the process until exec or _exit.
                let errno = unsafe { self.become_command(&argv, &envp, &mut script, parent) };
                let bytes = errno.to_ne_bytes();
                for &fd in errors {
                    // SAFETY: 4 valid bytes; write is async-signal-safe.
                    unsafe { libc::write(fd, bytes.as_ptr().cast::<c_void>(), bytes.len()) };
                }
                exit_now(if errno == libc::ENOENT { 127 } else { 126 })
            }
        }
    }

    /// Between fork and exec: only system calls, nothing allocated. Returns the errno of what failed.
    ///
    /// # Safety
    /// To be called in a forked child, with NULL-terminated arrays of pointers to NUL-terminated strings.
    unsafe fn become_command(
        &self,
        argv: &[*const c_char],
        envp: &[*const c_char],
        script: &mut [*const c_char],
        parent: i32,
    ) -> c_int {
        // SAFETY: every call below is a system call or async-signal-safe, on memory that this copy owns.
        unsafe {
            for &fd in &self.close_first {
                libc::close(fd);
            }
            if let Some(signal) = self.death_signal {
                libc::prctl(libc::PR_SET_PDEATHSIG, signal);
                // The parent may have died before that; compare with its PID, never with 1: where init is
                // the parent, or a subreaper took over, 1 says nothing.
                if libc::getppid() != parent {
                    libc::_exit(125);
                }
            }
            if self.new_session {
                libc::setsid();
            }
            if let Some(group) = self.group {
                libc::setpgid(0, group);
            }
            for (target, from) in (0..).zip(self.stdio) {
                if let Some(fd) = from
                    && (if fd == target { libc::fcntl(fd, libc::F_SETFD, 0) } else { libc::dup2(fd, target) })
                        < 0
                {
                    return *libc::__errno_location();
                }
            }
            for (fd, closed) in (0..).zip(self.closed) {
                if closed {
                    libc::close(fd);
                }
            }
            if !self.inherit {
                close_above_stderr();
            }
            for &fd in &self.keep {
                libc::fcntl(fd, libc::F_SETFD, 0);
            }
            let (mask, ignored) = match self.signals {
                LeaderSignals::Default => (0, 0),
                LeaderSignals::Inherited { mask, ignored } => (mask, ignored),
            };
            for signal in 1..=64 {
                set_disposition(signal, ignored & (1 << (signal - 1)) != 0);
            }
            libc::syscall(
                libc::SYS_rt_sigprocmask,
                libc::SIG_SETMASK,
                &raw const mask,
                std::ptr::null::<u64>(),
                size_of::<u64>(),
            );
            if let Some(fd) = self.barrier {
                let mut byte = 0u8;
                loop {
                    let n = libc::read(fd, (&raw mut byte).cast::<c_void>(), 1);
                    if n == 1 {
                        break;
                    }
                    if n == 0 || *libc::__errno_location() != libc::EINTR {
                        libc::_exit(125);
                    }
                }
            }
            let mut answer = libc::ENOENT;
            for file in &self.candidates {
                libc::execve(file.as_ptr(), argv.as_ptr(), envp.as_ptr());
                match *libc::__errno_location() {
                    libc::ENOEXEC => {
                        script[1] = file.as_ptr();
                        libc::execve(c"/bin/sh".as_ptr(), script.as_ptr(), envp.as_ptr());
                        return libc::ENOEXEC;
                    }
                    // execvp goes on after these, and remembers that a file was there.
                    libc::EACCES => answer = libc::EACCES,
                    libc::ENOENT | libc::ENOTDIR if self.candidates.len() > 1 => {}
                    libc::ENOENT => return libc::ENOENT,
                    other => return other,
                }
            }
            answer
        }
    }
}

/// Everything above 2 vanishes at exec. On a kernel without CLOSE_RANGE_CLOEXEC (before 5.11) one by one.
///
/// # Safety
/// To be called in a forked child.
unsafe fn close_above_stderr() {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 1 << 2;
    // SAFETY: flags on descriptors of this copy of the process; no memory is touched.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC) == 0 {
            return;
        }
        let mut limit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        for fd in 3..c_int::try_from(limit.rlim_cur.min(1 << 20)).unwrap_or(1 << 20) {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// Default or ignored, by the system call: the C library's refuses the two numbers it keeps for itself.
///
/// # Safety
/// To be called in a forked child.
unsafe fn set_disposition(signal: c_int, ignored: bool) {
    // The kernel's struct sigaction begins with the handler; all zero is SIG_DFL without flags. It has at
    // most 4 words on every architecture that Rust supports on Linux but mips.
    let action: [usize; 4] = [if ignored { libc::SIG_IGN } else { libc::SIG_DFL }, 0, 0, 0];
    // SAFETY: the structure is at least as large as the kernel reads; no old one is asked for.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            action.as_ptr(),
            std::ptr::null::<usize>(),
            size_of::<u64>(),
        )
    };
}

/// Which signals this process ignores, bit N - 1 for signal N; SIGPIPE as it was before Rust's runtime.
pub fn ignored_signals() -> u64 {
    let mut set = 0;
    for signal in 1..=64 {
        let mut old = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a null new action only reads; numbers that the C library keeps give an error.
        let ignored = unsafe {
            libc::sigaction(signal, std::ptr::null(), old.as_mut_ptr()) == 0
                && old.assume_init().sa_sigaction == libc::SIG_IGN
        };
        let ignored = if signal == libc::SIGPIPE { sigpipe_was_ignored() } else { ignored };
        if ignored {
            set |= 1 << (signal - 1);
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_bit_n_minus_one_for_signal_n() {
        assert_eq!(kernel_set(&[1, 15, 40, 64]), 1 | 1 << 14 | 1 << 39 | 1 << 63);
        assert_eq!(kernel_set(&[0, 65, -1]), 0);
    }

    #[test]
    fn groups_and_children_with_dangerous_numbers_are_never_signalled() {
        for pid in [1, 0, -1] {
            assert!(signal_group(pid, 0).is_err());
            assert!(signal_child(pid, 0).is_err());
        }
    }

    #[test]
    fn commands_are_looked_up_as_execvp_does() {
        let c = |p: &CStr, path: &[u8]| Command::new(vec![p.to_owned()], vec![], path).candidates;
        assert_eq!(c(c"ls", b"/bin::/x"), [c"/bin/ls".to_owned(), c"./ls".to_owned(), c"/x/ls".to_owned()]);
        assert_eq!(c(c"./ls", b"/bin"), [c"./ls".to_owned()]);
        assert!(c(c"", b"/bin").is_empty());
    }
}
