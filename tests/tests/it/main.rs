//! What crosses the tools, and the helpers that all their tests rest on.

mod fixture;
mod house;
mod make;
mod readme;
mod scene;
