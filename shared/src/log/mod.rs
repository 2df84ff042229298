//! Reading logs: from the end, whole lines, by several readers, as they grow.

mod cursor;
mod follow;
mod last;
mod lines;
mod position;
mod tail;

pub use cursor::{Cursor, forget_cursors, is_cursor_id, log_id, unread_before, unread_lines};
pub use follow::{Watch, Woken};
pub use last::{LastOffsets, last_lines};
pub use lines::{Mark, Piece, Reader, Stretch, char_floor};
pub use position::{Ask, Claim, Place, Position, Searched, next_claim};
pub use tail::{Tail, tail};
