# tb.mk: background test runs as Make targets.
#
#     include tb.mk
#
#     make test-bg TESTFILE=tests/unit/test_foo.py        start it, come back at once
#     make test-bg-runner ACTION=status TESTFILE=...      launch status wait kill results cleanup
#     make test-bg-runner ACTION=poll-all                 everything that is tracked
#     make gate-background                                `make gate` in the background, under the name "gate"
#     make gate-status-check                              how it is getting on
#     make agent-test [TESTFILE=...]                      now, under a cap, silent when all is well
#     make agent-test-debug [TESTFILE=...]  (or: atd)     the same with every test named, a diagnosis, results
#     make reap                                           stop test processes that nobody owns any more
#
# Only ACTION=wait, agent-test and agent-test-debug take as long as the tests do; nothing else waits.
#
# A target succeeds when what was asked has been done or answered: a status that says RUNNING is an
# answer. It fails when a run failed, when there is none of that name, or when a tool could not do its
# work; the tool's own exit code is in the line before make's (make itself exits 2 for every failure).
#
# Variables, to be set before the include, on the command line or in the environment:
#   TB_BIN       directory of the tools (default: they are on PATH)
#   TB_LOG_DIR   run directory (default: the tools' own, .gate-logs)
#   PYTEST_ARGS  more arguments for pytest, as shell words
#   CAP          wall clock of agent-test and agent-test-debug (480s)
#   AGENT_LOG    their log (agent-test.log in the run directory)
#
# TESTFILE may hold anything, `a b.py::test[$x; "y" #1]` too: it goes through the environment and is
# expanded neither by make nor by the shell.

CAP ?= 480s
PYTEST_ARGS ?=

# $(value ...) is what was typed: an ordinary reference, or make's own export, would expand a `$`.
unexport TESTFILE ACTION
export TB_MK_TESTFILE := $(value TESTFILE)
export TB_MK_ACTION := $(value ACTION)
export TB_MK_CAP := $(CAP)
export TB_MK_LOG := $(AGENT_LOG)
export TB_MK_BIN := $(if $(TB_BIN),$(TB_BIN)/)
ifneq ($(origin TB_LOG_DIR),undefined)
export TB_LOG_DIR
endif

# Not written as such in a recipe: make would run the recipe even for `make -n`, and hand a jobserver on.
tb_mk_make = $(MAKE)

# Included first, this file must not decide what plain `make` does.
tb_mk_goal := $(.DEFAULT_GOAL)

# Shell functions that recipes begin with. `tb_end CODE` says what a tool's exit code means, and ends.
define tb_mk_sh
need() { \
  case "$$TB_MK_TESTFILE" in \
    '') echo 'ERROR: TESTFILE is required' >&2; exit 2 ;; \
    -*) echo 'ERROR: TESTFILE must not begin with "-"' >&2; exit 2 ;; \
  esac; \
}; \
tb() { tb_tool=$$1; shift; "$${TB_MK_BIN}tb-$$tb_tool" "$$@"; }; \
tb_end() { \
  case $$1 in \
    0) exit 0 ;; \
    1) tb_why='the run did not pass' ;; \
    2) tb_why='a wrong argument, or no such file' ;; \
    3) tb_why='it is running' ;; \
    4) tb_why='not tracked: no such job here' ;; \
    5) tb_why='no verdict: it ended without saying how' ;; \
    6) tb_why='refused: too many jobs are running' ;; \
    7) tb_why='something could not be stopped' ;; \
    124) tb_why='time is up' ;; \
    126|127) tb_why='the command could not be run: is TB_BIN right, are the tools on PATH?' ;; \
    130) tb_why='interrupted' ;; \
    *) tb_why='failed' ;; \
  esac; \
  echo "tb.mk: exit code $$1: $$tb_why" >&2; exit "$$1"; \
}; \
tb_answer() { if [ "$$1" = 3 ]; then exit 0; fi; tb_end "$$1"; }
endef

# Finds the interpreter and the log of agent-test as the tools find theirs.
define tb_mk_agent
tb_python=$${TB_PYTHON:-}; \
if [ -z "$$tb_python" ]; then \
  for tb_try in .venv/bin/python "$${VIRTUAL_ENV:-/nonexistent}/bin/python" python3 python; do \
    if command -v "$$tb_try" >/dev/null 2>&1; then tb_python=$$tb_try; break; fi; \
  done; \
fi; \
tb_log=$$TB_MK_LOG; \
if [ -z "$$tb_log" ]; then \
  tb_dir=$${TB_LOG_DIR:-$${GLUDD_TEST_LOG_DIR:-.gate-logs}}; \
  if mkdir -m 700 "$$tb_dir" 2>/dev/null; then echo '*' >"$$tb_dir/.gitignore"; fi; \
  tb_log=$$tb_dir/agent-test.log; \
fi; \
set --; if [ -n "$$TB_MK_TESTFILE" ]; then need; set -- "$$TB_MK_TESTFILE"; fi
endef

.PHONY: test-bg test-bg-runner gate-background gate-status-check agent-test agent-test-debug atd reap

test-bg:
	@$(tb_mk_sh); need; tb launch "$$TB_MK_TESTFILE" -- $(PYTEST_ARGS); tb_end $$?

test-bg-runner:
	@$(tb_mk_sh); \
	case "$$TB_MK_ACTION" in \
	  launch) need; tb launch "$$TB_MK_TESTFILE" -- $(PYTEST_ARGS); tb_end $$? ;; \
	  status) need; tb status -- "$$TB_MK_TESTFILE"; tb_answer $$? ;; \
	  poll-all) tb status; tb_end $$? ;; \
	  wait) need; tb wait -- "$$TB_MK_TESTFILE"; tb_end $$? ;; \
	  kill) need; tb kill -- "$$TB_MK_TESTFILE"; tb_end $$? ;; \
	  results) need; tb results -- "$$TB_MK_TESTFILE"; tb_end $$? ;; \
	  cleanup) if [ -z "$$TB_MK_TESTFILE" ]; then tb clean; else need; tb clean -- "$$TB_MK_TESTFILE"; fi; tb_end $$? ;; \
	  *) echo 'ERROR: ACTION must be launch, status, poll-all, wait, kill, results or cleanup' >&2; exit 2 ;; \
	esac

gate-background:
	@$(tb_mk_sh); tb launch --name gate -- $(tb_mk_make) gate; tb_end $$?

gate-status-check:
	@$(tb_mk_sh); tb status gate; tb_answer $$?

agent-test:
	@$(tb_mk_sh); $(tb_mk_agent); \
	tb guard --sweep --quiet-success --heartbeat 20s --log "$$tb_log" "$$TB_MK_CAP" \
	  "$$tb_python" -m pytest "$$@" $(PYTEST_ARGS); \
	tb_code=$$?; if [ $$tb_code -ne 0 ]; then echo "Log: $$tb_log" >&2; fi; tb_end $$tb_code

agent-test-debug atd:
	@$(tb_mk_sh); $(tb_mk_agent); \
	tb reap-orphans || tb_end $$?; \
	echo "Log: $$tb_log"; \
	tb guard --dump --log "$$tb_log" "$$TB_MK_CAP" "$$tb_python" -m pytest "$$@" -v $(PYTEST_ARGS); \
	tb_code=$$?; tb results --file "$$tb_log" || :; tb_end $$tb_code

reap:
	@$(tb_mk_sh); tb reap-orphans; tb_end $$?

.DEFAULT_GOAL := $(tb_mk_goal)
