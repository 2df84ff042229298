//! Whatever the order of writes, truncations, drops, reads and failed writes: no line is lost without a word, and none
//! goes to one cursor twice. No processes here: the library's functions over a directory, the log written as a job
//! and its supervisor would.

use crate::scene::{Run, Scene};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Write};
use std::rc::Rc;
use tb_log::printer::{Form, Printer, Style};
use tb_log::read::{Progress, deliver};
use tb_log::sink::Sink;
use tb_shared::contract::{LogFile, LogName, RunDir, read_log};
use tb_shared::log::{Ask, Claim, Cursor};

/// What happens to the log beside its readers.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// So many lines, the last of them perhaps not to its end.
    Write { lines: u8, long: bool, partial: bool },
    /// A share of the lines that there are, in 255ths.
    Drop(u8),
    /// What `> /dev/stderr` does.
    Truncate,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Deed(Deed),
    /// One of two readers claims, about this much.
    Claim {
        reader: bool,
        batch: u16,
    },
    /// It delivers what it has claimed, into an output that takes so much and before whose first write something
    /// happens to the log.
    Deliver {
        reader: bool,
        room: Option<u16>,
        meanwhile: Option<Deed>,
    },
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => (0..12u8, prop::bool::weighted(0.1), any::<bool>())
            .prop_map(|(lines, long, partial)| Deed::Write { lines, long, partial }),
        2 => any::<u8>().prop_map(Deed::Drop),
        1 => Just(Deed::Truncate),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let meanwhile = prop::option::weighted(0.2, deed());
    let room = prop::option::weighted(0.3, any::<u16>().prop_map(|r| r % 2000));
    prop_oneof![
        3 => deed().prop_map(Step::Deed),
        3 => (any::<bool>(), 1..2000u16).prop_map(|(reader, batch)| Step::Claim { reader, batch }),
        3 => (any::<bool>(), room, meanwhile)
            .prop_map(|(reader, room, meanwhile)| Step::Deliver { reader, room, meanwhile }),
    ]
}

/// The log, and what has become of each line that was ever written to it.
struct World {
    run: Run,
    droppable: bool,
    /// Where output begins now, and where the log ends.
    start: u64,
    size: u64,
    next: u32,
    /// A line that is not complete: its number, offset and missing rest.
    partial: Option<(u32, u64, String)>,
    /// Where each whole line is.
    lines: BTreeMap<u32, (u64, u64)>,
    /// Where those were that were dropped from the log as it is now.
    holes: BTreeMap<u32, (u64, u64)>,
    truncations: u32,
    /// Lines that were in a log when it was truncated, and lines that were dropped.
    truncated: BTreeSet<u32>,
    dropped: BTreeSet<u32>,
}

fn text(number: u32, long: bool) -> String {
    let filling = if long { 90_000 } else { number as usize * 7 % 60 };
    format!("{number}:{}:{number}\n", "x".repeat(filling))
}

impl World {
    fn new(scene: &Scene, droppable: bool) -> World {
        let run = scene.run_of("a", "0001", 1, |_| {}, droppable);
        let size = run.file.metadata().unwrap().len();
        World {
            run,
            droppable,
            start: size,
            size,
            next: 0,
            partial: None,
            lines: BTreeMap::new(),
            holes: BTreeMap::new(),
            truncations: 0,
            truncated: BTreeSet::new(),
            dropped: BTreeSet::new(),
        }
    }

    fn put(&mut self, bytes: &str) {
        self.run.write(bytes);
        self.size += bytes.len() as u64;
    }

    fn complete(&mut self) {
        if let Some((number, at, rest)) = self.partial.take() {
            self.put(&rest);
            self.lines.insert(number, (at, self.size));
        }
    }

    fn act(&mut self, deed: Deed) {
        match deed {
            Deed::Write { lines, long, partial } => {
                for i in 0..lines {
                    self.complete();
                    let (number, at) = (self.next, self.size);
                    self.next += 1;
                    let line = text(number, long && i == 0);
                    if partial && i + 1 == lines {
                        let (now, later) = line.split_at(line.len() / 2);
                        self.put(now);
                        self.partial = Some((number, at, later.to_owned()));
                    } else {
                        self.put(&line);
                        self.lines.insert(number, (at, self.size));
                    }
                }
            }
            Deed::Drop(share) => {
                let many = self.lines.len() * usize::from(share) / 255;
                let Some((_, &(_, until))) = many.checked_sub(1).and_then(|n| self.lines.iter().nth(n))
                else {
                    return;
                };
                if self.droppable {
                    self.run.drop_until(until);
                    let gone: Vec<u32> = self.lines.keys().take(many).copied().collect();
                    for number in gone {
                        self.holes.extend(self.lines.remove_entry(&number));
                        self.dropped.insert(number);
                    }
                }
            }
            Deed::Truncate => {
                self.run.file.set_len(0).unwrap();
                self.truncations += 1;
                (self.start, self.size) = (0, 0);
                // Without its header a log keeps everything.
                self.droppable = false;
                self.truncated.extend(std::mem::take(&mut self.lines).into_keys());
                self.holes.clear();
                self.truncated.extend(self.partial.take().map(|(number, ..)| number));
            }
        }
    }
}

/// An output with so much room, before whose first write something happens.
struct Flaky<'a> {
    out: Rc<RefCell<Vec<u8>>>,
    room: Option<usize>,
    meanwhile: Option<(Deed, &'a RefCell<World>)>,
}

impl Write for Flaky<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some((deed, world)) = self.meanwhile.take() {
            world.borrow_mut().act(deed);
        }
        let n = self.room.map_or(bytes.len(), |room| room.min(bytes.len()));
        if n == 0 {
            return Err(ErrorKind::BrokenPipe.into());
        }
        self.room = self.room.map(|room| room - n);
        self.out.borrow_mut().extend(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What readers were given and told.
#[derive(Default)]
struct Readers {
    delivered: BTreeSet<u32>,
    /// Lines that could not be given back, and it was said.
    told: BTreeSet<u32>,
    dropped: u64,
    truncated: bool,
    failures: bool,
}

struct Play<'a> {
    dir: &'a RunDir,
    log_name: LogName,
    world: &'a RefCell<World>,
    readers: Readers,
}

impl Play<'_> {
    fn log(&self) -> LogFile {
        read_log(self.dir, &self.log_name).unwrap().unwrap()
    }

    fn claim(&self, batch: u64, over: bool) -> (LogFile, Claim) {
        let log = self.log();
        let mut cursor = Cursor::of(self.dir, &log, "r").unwrap();
        let claim = cursor.claim(&log, Ask { over, limit: u64::MAX, batch }).unwrap();
        (log, claim)
    }

    fn deliver(&mut self, log: &LogFile, claim: &Claim, room: Option<u16>, meanwhile: Option<Deed>) {
        let out = Rc::new(RefCell::new(Vec::new()));
        let flaky = Flaky {
            out: Rc::clone(&out),
            room: room.map(usize::from),
            meanwhile: meanwhile.map(|deed| (deed, self.world)),
        };
        let style = Style { form: Form::Bytes, filter: None, max_line: None };
        let mut printer = Printer::new(Sink::new(flaky, false), style, true);
        let mut progress = Progress::Shared(Cursor::of(self.dir, log, "r").unwrap());
        // What the claim was made of, before anything happens.
        let world = self.world.borrow();
        let claimed: Vec<(u32, (u64, u64))> =
            world.lines.iter().chain(&world.holes).map(|(n, at)| (*n, *at)).collect();
        drop(world);
        let done = deliver(self.dir, log, &mut progress, claim, &mut printer, |_| Ok(()));
        let counts = printer.counts;
        let delivered = printer.sink.delivered().offset;
        if done.is_err() {
            let lost =
                claimed.iter().filter(|(_, (at, end))| *at >= delivered && *end <= claim.stretch.to.offset);
            self.readers.told.extend(lost.map(|(number, _)| *number));
        }
        self.readers.failures |= printer.sink.is_closed();
        self.readers.truncated |= counts.truncated;
        // What a failed read has found is found again by the next.
        self.readers.dropped += if printer.sink.is_closed() && delivered <= claim.stretch.from.offset {
            0
        } else {
            counts.dropped
        };
        let out = out.borrow();
        let whole = out.iter().rposition(|&b| b == b'\n').map_or(&[][..], |end| &out[..end]);
        for line in whole.split(|&b| b == b'\n').filter(|_| !whole.is_empty()) {
            let line = std::str::from_utf8(line).expect("nothing of a hole is handed out");
            let number = line.split(':').next().and_then(|n| n.parse().ok());
            let sound = number.filter(|n| text(*n, line.len() > 1000).trim_end() == line);
            match sound {
                Some(number) => {
                    assert!(self.readers.delivered.insert(number), "line {number} was delivered twice");
                }
                // A long line that was dropped or truncated while it went out.
                None => assert!(counts.dropped > 0 || counts.truncated, "{line:.80}"),
            }
        }
    }
}

fn play(droppable: bool, steps: &[Step]) {
    let scene = Scene::new();
    let world = RefCell::new(World::new(&scene, droppable));
    let dir = RunDir::open(&scene.run_dir()).unwrap().unwrap();
    let log_name =
        LogName::parse(world.borrow().run.path.file_name().unwrap().to_str().unwrap()).expect("a log's name");
    let mut play = Play { dir: &dir, log_name, world: &world, readers: Readers::default() };
    let mut held: [Option<(LogFile, Claim)>; 2] = [None, None];
    let mut quiet = true;
    for step in steps {
        match *step {
            Step::Deed(deed) => world.borrow_mut().act(deed),
            Step::Claim { reader, batch } => {
                let slot = usize::from(reader);
                if held[slot].is_none() {
                    held[slot] = Some(play.claim(batch.into(), false));
                }
            }
            Step::Deliver { reader, room, meanwhile } => {
                if let Some((log, claim)) = held[usize::from(reader)].take() {
                    quiet &= meanwhile.is_none();
                    play.deliver(&log, &claim, room, meanwhile);
                }
            }
        }
    }
    for (log, claim) in held.iter_mut().filter_map(Option::take) {
        play.deliver(&log, &claim, None, None);
    }
    world.borrow_mut().complete();
    loop {
        let (log, claim) = play.claim(u64::MAX, true);
        if claim.is_empty() {
            break;
        }
        play.deliver(&log, &claim, None, None);
    }
    let Readers { delivered, told, dropped, truncated, failures } = &play.readers;
    let world = world.borrow();
    for number in world.lines.keys() {
        assert!(delivered.contains(number) || told.contains(number), "line {number} was lost");
    }
    let missed = |gone: &BTreeSet<u32>| {
        gone.iter().filter(|n| !delivered.contains(n) && !told.contains(n)).count() as u64
    };
    let gap = missed(&world.dropped);
    if world.truncations == 0 {
        assert!(*dropped >= gap, "{gap} lines were dropped unread, {dropped} were told");
        // Without accidents the count is exact.
        assert!(
            failures | !quiet | (*dropped == gap),
            "{gap} lines were dropped unread, {dropped} were told"
        );
    } else if !delivered.is_disjoint(&world.truncated) {
        assert!(truncated, "nothing was said of a truncation");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t11_t20_t22_t45_no_line_is_lost_silently_and_none_is_delivered_twice(
        droppable in any::<bool>(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        play(droppable, &steps);
    }
}
