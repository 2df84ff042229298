//! What tb-clean forgets, and what it never touches.

mod forgets;
mod refusals;
