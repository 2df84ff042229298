//! One pass over /proc: every process seen in one state, then decisions on that picture.

use super::Ident;
use super::stat::{Stat, read_stat_at};
use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
use std::collections::HashMap;

/// All processes as one pass over /proc saw them.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    rows: HashMap<i32, Stat>,
    children: HashMap<i32, Vec<i32>>,
}

impl Snapshot {
    /// Takes the picture. A process that comes or goes meanwhile may be in it or not.
    ///
    /// # Errors
    /// When /proc cannot be read.
    pub fn take() -> std::io::Result<Snapshot> {
        let proc = openat(CWD, "/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let mut rows = Vec::with_capacity(512);
        let mut path = String::with_capacity(24);
        for entry in Dir::read_from(&proc)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !name.first().is_some_and(u8::is_ascii_digit) {
                continue;
            }
            path.clear();
            path.push_str(&String::from_utf8_lossy(name));
            path.push_str("/stat");
            rows.extend(read_stat_at(&proc, &path));
        }
        Ok(Snapshot::of(rows))
    }

    /// A picture from rows, for the pure functions' tests.
    pub fn of(rows: impl IntoIterator<Item = Stat>) -> Snapshot {
        let rows: HashMap<i32, Stat> = rows.into_iter().map(|r| (r.pid, r)).collect();
        let mut children: HashMap<i32, Vec<i32>> = HashMap::with_capacity(rows.len());
        for row in rows.values() {
            children.entry(row.ppid).or_default().push(row.pid);
        }
        Snapshot { rows, children }
    }

    /// All rows, in no order.
    pub fn rows(&self) -> impl Iterator<Item = &Stat> {
        self.rows.values()
    }

    /// One process.
    pub fn get(&self, pid: i32) -> Option<&Stat> {
        self.rows.get(&pid)
    }

    /// Exactly this process, if the picture has it.
    pub fn find(&self, ident: Ident) -> Option<&Stat> {
        self.get(ident.pid).filter(|s| s.start == ident.start)
    }

    /// The children of a process.
    pub fn children(&self, pid: i32) -> &[i32] {
        self.children.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// All descendants of a process, parents before their children, without the process itself.
    pub fn descendants(&self, root: i32) -> Vec<&Stat> {
        self.descend(root, |_| true)
    }

    /// Descendants, going below only those for which `enter` says so; the others are listed themselves.
    pub fn descend(&self, root: i32, enter: impl Fn(&Stat) -> bool) -> Vec<&Stat> {
        let mut found = Vec::new();
        let mut at = 0;
        let mut next = self.children(root);
        loop {
            found.extend(next.iter().filter_map(|pid| self.rows.get(pid)).filter(|row| row.pid != root));
            let Some(row): Option<&&Stat> = found.get(at) else { return found };
            next = if enter(row) { self.children(row.pid) } else { &[] };
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: i32, ppid: i32) -> Stat {
        Stat {
            pid,
            comm: "x".into(),
            state: 'S',
            ppid,
            pgid: pid,
            sid: pid,
            cpu_ticks: 0,
            threads: 1,
            start: 1,
            rss_pages: 0,
        }
    }

    #[test]
    fn descendants_are_found_over_all_generations_and_without_strangers() {
        let s = Snapshot::of([row(1, 0), row(2, 1), row(3, 2), row(4, 3), row(5, 1), row(6, 2)]);
        let mut found: Vec<i32> = s.descendants(2).iter().map(|r| r.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 4, 6]);
        let stop: Vec<i32> = s.descend(1, |r| r.pid != 2).iter().map(|r| r.pid).collect();
        assert!(stop.contains(&2) && !stop.contains(&3));
    }

    #[test]
    fn a_real_picture_holds_this_process() {
        let me = std::process::id().cast_signed();
        assert!(Snapshot::take().unwrap().get(me).is_some());
    }
}
