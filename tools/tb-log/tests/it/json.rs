//! The object, for programs.

use crate::scene::Scene;
use tb_shared::contract::Outcome;

#[test]
fn g18_one_object_a_job_with_fixed_names() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("one\n\"two\"\n");
    run.finish(Outcome::Failed, 3);
    let json = scene.log(&["--json", "a.py"]).ok().json();
    let expected = serde_json::json!({
        "v": 1, "name": "a.py", "job": "0001", "lines": ["one", "\"two\""], "new_line_count": 2,
        "dropped_lines": 0, "clipped_lines": 0, "late_lines": 0, "truncated": false, "status": "FINISHED",
        "outcome": "failed", "exit_code": 3, "signal": null,
        "log_file": ".gate-logs/test-a_py-20260725_143001.log",
    });
    assert_eq!(json, expected);
}
