//! Which machine, boot and namespaces this is.

use std::os::unix::fs::MetadataExt;

/// What makes a PID and a start time mean something: they hold for one boot and its namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Here {
    /// /proc/sys/kernel/random/boot_id
    pub boot: String,
    /// The PID namespace's inode.
    pub pidns: u64,
    /// The time namespace's inode, 0 on a kernel without them.
    pub timens: u64,
    /// The host's name.
    pub host: String,
}

impl Here {
    /// Reads it.
    pub fn read() -> Here {
        let ns = |kind| std::fs::metadata(format!("/proc/self/ns/{kind}")).map_or(0, |m| m.ino());
        Here {
            boot: std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
                .map_or_else(|_| String::new(), |s| s.trim().to_owned()),
            pidns: ns("pid"),
            timens: ns("time"),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        }
    }
}
