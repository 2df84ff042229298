//! tb-reap-orphans on real process trees.

mod container;
mod ends;
mod jobs;
mod orphans;
mod places;
mod scene;
mod users;
mod xdist;
