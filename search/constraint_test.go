package search_test

import (
	"errors"
	"strings"
	"testing"

	"nocturne/search"
)

func TestConstraintMeaning(t *testing.T) {
	values := func(changes search.Values) search.Values { return changes }
	ll, threads := search.Text("LL"), "NCCL_NTHREADS"
	tests := []struct {
		source string
		values search.Values
		want   bool
	}{
		{`NCCL_PROTO == "LL"`, values(search.Values{"NCCL_PROTO": ll}), true},
		{`NCCL_PROTO == 'LL'`, values(search.Values{"NCCL_PROTO": search.Unset}), false},
		{`NCCL_PROTO != "LL"`, values(search.Values{"NCCL_PROTO": search.Unset}), true},
		{`NCCL_PROTO == unset`, values(search.Values{"NCCL_PROTO": search.Unset}), true},
		{`NCCL_PROTO in ["LL", unset]`, values(search.Values{"NCCL_PROTO": search.Unset}), true},
		{`NCCL_PROTO not in ["LL", unset]`, values(search.Values{"NCCL_PROTO": ll}), false},
		{`NCCL_NTHREADS <= 256`, values(search.Values{threads: search.Int(512)}), false},
		{`NCCL_NTHREADS <= 256`, values(search.Values{threads: search.Int(256)}), true},
		{`NCCL_NTHREADS >= 256`, values(search.Values{threads: search.Int(128)}), false},
		{`NCCL_NTHREADS > 128 and NCCL_NTHREADS < 512`, values(search.Values{threads: search.Int(256)}), true},
		{`64 < NCCL_NTHREADS < 512`, values(search.Values{threads: search.Int(512)}), false},
		{`NCCL_NTHREADS in 64..256`, values(search.Values{threads: search.Int(512)}), false},
		{`NCCL_NTHREADS * 2 - 1 == 127`, values(search.Values{threads: search.Int(64)}), true},
		{`NCCL_NTHREADS / 0 == 1`, values(search.Values{threads: search.Int(64)}), true}, // not known
		{`-NCCL_NTHREADS < -100`, values(search.Values{threads: search.Int(64)}), false},

		// An ordering with unset is neither true nor false, and does not reject.
		{`NCCL_NTHREADS <= 256`, values(search.Values{threads: search.Unset}), true},
		{`!(NCCL_NTHREADS <= 256)`, values(search.Values{threads: search.Unset}), true},
		{`NCCL_NTHREADS <= 256 && NCCL_PROTO == "LL"`, values(search.Values{threads: search.Unset, "NCCL_PROTO": search.Unset}), false},
		{`NCCL_NTHREADS != unset && NCCL_NTHREADS <= 256`, values(search.Values{threads: search.Unset}), false},
		{`NCCL_NTHREADS + 1 == 65`, values(search.Values{threads: search.Unset}), true},

		// A rule that mentions an inactive knob holds.
		{`speculative.topk == 1 || speculative.steps >= 2`, values(search.Values{"speculative.steps": search.Int(0)}), true},
		{`speculative.topk == 4 && speculative.steps >= 2`, values(search.Values{"speculative.steps": search.Int(0)}), true},
		{`speculative.topk == 1 || speculative.steps >= 2`,
			values(search.Values{"speculative.steps": search.Int(1), "speculative.topk": search.Int(4)}), false},

		// A switch is true when present.
		{`flag.disable_custom_all_reduce`, values(search.Values{"flag.disable_custom_all_reduce": search.Bool(true)}), true},
		{`!flag.disable_custom_all_reduce`, values(search.Values{"flag.disable_custom_all_reduce": search.Unset}), true},
		{`flag.disable_custom_all_reduce == false`, values(search.Values{"flag.disable_custom_all_reduce": search.Unset}), true},
		{`flag.disable_custom_all_reduce == unset`, values(search.Values{"flag.disable_custom_all_reduce": search.Unset}), true},
		{`(NCCL_NTHREADS > 64) == flag.disable_custom_all_reduce`,
			values(search.Values{threads: search.Int(64), "flag.disable_custom_all_reduce": search.Unset}), true},

		// Ordinal texts compare by position.
		{`NCCL_P2P_LEVEL >= "PHB"`, values(search.Values{"NCCL_P2P_LEVEL": search.Text("PIX")}), false},
		{`"PHB" <= NCCL_P2P_LEVEL`, values(search.Values{"NCCL_P2P_LEVEL": search.Text("SYS")}), true},
		{`NCCL_P2P_LEVEL >= "PHB"`, values(search.Values{"NCCL_P2P_LEVEL": search.Unset}), true},
	}
	for _, test := range tests {
		t.Run(test.source+" with "+test.values.String(), func(t *testing.T) {
			constraint, err := search.ParseConstraint(test.source, serverKnobs(t))
			if err != nil {
				t.Fatal(err)
			}
			if got := constraint.Holds(test.values); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestConstraintsThatAreRefused(t *testing.T) {
	tests := []struct {
		source string
		column int
		want   string
	}{
		{`NCCL_NTHREAD <= 256`, 1, "unknown name NCCL_NTHREAD (did you mean NCCL_NTHREADS?)"},
		{`speculative.steps >= 2 || speculativ.topk == 1`, 27, "unknown name speculativ.topk (did you mean speculative.topk?)"},
		{`NCCL_PROTO == LL`, 15, `unknown name LL; a text needs quotes: "LL"`},
		{`NCCL_PROTO == 3`, 12, "unset or a text never equals a number"},
		{`NCCL_PROTO < "LL"`, 12, "have no order"},
		{`NCCL_NTHREADS + 1`, 15, "is a number, a constraint must be true or false"},
		{`NCCL_PROTO`, 1, "a constraint must be true or false"},
		{`NCCL_NTHREADS && true`, 1, "want true or false"},
		{`true || NCCL_NTHREADS`, 9, "want true or false"},
		{`!NCCL_NTHREADS`, 2, "cannot be negated"},
		{`NCCL_NTHREADS in []`, 18, "the list after in is empty"},
		{`NCCL_NTHREADS in 4`, 18, "want a list"},
		{`NCCL_NTHREADS in ["LL"]`, 19, "never equals a text"},
		{`len(NCCL_PROTO) > 1`, 1, "calls are not part"},
		{`NCCL_PROTO contains "L"`, 12, "operator contains is not part"},
		{`NCCL_PROTO == nil`, 15, "write unset"},
		{`[1] == [1]`, 1, "a list may only follow in"},
		{`NCCL_NTHREADS ?? 1`, 15, "operator ?? is not part"},
		{`NCCL_NTHREADS > 1 ? true : false`, 32, "not part of the constraint language"},
		{`let x = 1; x > 0`, 5, "not part of the constraint language"},
		{`NCCL_NTHREADS <=`, 16, "unexpected"},
		{`(NCCL_NTHREADS <= 1`, 19, "unexpected"},
		{`NCCL_NTHREADS <= 16M`, 20, "bad number syntax"},
		{``, 1, "unexpected"},
		{"NCCL_NTHREADS == \xff", 1, "not valid UTF-8"},
		{strings.Repeat("(", 5000), 4096, "5000 bytes"},
	}
	for _, test := range tests {
		t.Run(test.source[:min(len(test.source), 40)], func(t *testing.T) {
			_, err := search.ParseConstraint(test.source, serverKnobs(t))
			var fault *search.ConstraintError
			if !errors.As(err, &fault) {
				t.Fatalf("got %v, want a ConstraintError", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if fault.Column != test.column {
				t.Errorf("column %d, want %d: %v", fault.Column, test.column, err)
			}
		})
	}
}

func TestConstraintWithoutKnobIsRefused(t *testing.T) {
	_, err := search.NewSpace(serverKnobs(t), []search.Constraint{{Source: "1 < 2"}}, nil)
	if err == nil || !strings.Contains(err.Error(), "mentions no knob") {
		t.Errorf("got %v, want it refused", err)
	}
}

func FuzzParseConstraint(f *testing.F) {
	for _, seed := range []string{
		`speculative.topk == 1 || speculative.steps >= 2`, `NCCL_PROTO in ["LL", unset]`, `!flag.disable_custom_all_reduce`,
		`-NCCL_NTHREADS % 3 in 1..4`, `((NCCL_NTHREADS))`, `a?.b`, `$env["x"]`, `1e999 < NCCL_NTHREADS`, "\x00",
	} {
		f.Add(seed)
	}
	knobs := serverKnobs(f)
	f.Fuzz(func(t *testing.T, source string) {
		constraint, err := search.ParseConstraint(source, knobs)
		if err != nil {
			var fault *search.ConstraintError
			if !errors.As(err, &fault) || fault.Column < 1 {
				t.Fatalf("%q: got %v, want a ConstraintError with a column", source, err)
			}
			return
		}
		for _, knob := range knobs {
			for _, level := range knob.Levels {
				constraint.Holds(search.Values{knob.ID: level, "NCCL_NTHREADS": search.Unset, "speculative.steps": search.Int(2)})
			}
		}
	})
}
