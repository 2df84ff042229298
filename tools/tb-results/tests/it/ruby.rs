//! RSpec.

use crate::{Want, known, of, rerun};
use tb_results::report::Verdict;

const LOG: &str = "9 examples, 9 failures
.FF*

Pending: (Failures listed here are expected and do not affect your suite's status)

  1) Cart later
     # Temporarily skipped with xit
     # ./s_spec.rb:5

Failures:

  1) Cart totals
     Failure/Error: it(\"totals\") { expect(1).to eq 2 }

       expected: 2
            got: 1
     # ./s_spec.rb:3:in `block (2 levels) in <top (required)>'

  2) Cart raises
     Failure/Error: it(\"raises\") { raise ArgumentError, \"bad\" }

     ArgumentError:
       bad
     # ./s_spec.rb:4:in `block (2 levels) in <top (required)>'

Finished in 1 minute 0.5 seconds (files took 0.10543 seconds to load)
4 examples, 2 failures, 1 pending

Failed examples:

rspec ./s_spec.rb:3 # Cart totals
rspec './s_spec.rb[1:3]' # Cart raises
";

const WANT: Want<'_> = Want {
    runner: "rspec",
    counts: [Some(1), Some(2), Some(1), Some(0)],
    failing: Some(&["./s_spec.rb:3", "./s_spec.rb[1:3]"]),
    verdict: Verdict::Fail,
    complete: true,
};

#[test]
fn examples_are_named_by_their_place() {
    let report = WANT.of(LOG);
    assert_eq!(report.duration(), Some(60.5));
    assert_eq!(report.failing().unwrap()[1].error_class.as_deref(), Some("ArgumentError"));
    assert_eq!(rerun(&report), ["rspec ./s_spec.rb:3 './s_spec.rb[1:3]'"]);
}

#[test]
fn an_error_outside_of_examples_is_no_pass() {
    let log = "\nAn error occurred while loading ./bad_spec.rb.\n\nFinished in 0.00007 seconds (files took 0.14138 seconds to load)\n0 examples, 0 failures, 1 error occurred outside of examples\n";
    Want { counts: known([0, 0, 0, 1]), failing: Some(&[]), ..WANT }.of(log);
    let none = "Finished in 0.00018 seconds (files took 0.09144 seconds to load)\n0 examples, 0 failures\n";
    assert_eq!(of(none).verdict(), Some(Verdict::NoTests));
}

#[test]
fn letters_are_all_that_a_dead_run_leaves() {
    Want { failing: None, verdict: Verdict::Mixed, complete: false, ..WANT }.of(".FF*");
}

#[test]
fn json() {
    let log = r#"{"version":"3.12.0","examples":[{"status":"failed","file_path":"./s_spec.rb","line_number":3,"exception":{"class":"A::BadError","message":"bad\nx"}},{"status":"passed"}],"summary":{"duration":0.5,"example_count":2,"failure_count":1,"pending_count":0,"errors_outside_of_examples_count":0},"summary_line":"2 examples, 1 failure"}"#;
    let report = Want { counts: known([1, 1, 0, 0]), failing: Some(&["./s_spec.rb:3"]), ..WANT }.of(log);
    assert_eq!(report.failing().unwrap()[0].error_class.as_deref(), Some("BadError"));
    let long = log.replace("\"examples\":[", &format!("\"examples\":[{}", "{\"ab\":1},".repeat(30_000)));
    Want { counts: known([1, 1, 0, 0]), failing: None, ..WANT }.of(long);
}
