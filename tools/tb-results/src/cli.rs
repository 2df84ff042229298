//! Arguments.
