package problems_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"nocturne/search"
	"nocturne/search/problems"
)

const csvTable = `block,vector,unroll,note,time
32,1,false,x,4.5
32,2,false,x,4.0
64,1,true,x,3.0
64,2,true,x,
128,1,,y,2.0
128,2,,y,2.5
`

const jsonTable = `[
 {"block": 32, "vector": 1, "unroll": false, "note": "x", "time": 4.5},
 {"block": 32, "vector": 2, "unroll": false, "note": "x", "time": "4.0"},
 {"block": 64, "vector": 1, "unroll": true, "note": "x", "time": 3},
 {"block": 64, "vector": 2, "unroll": true, "note": "x", "time": null},
 {"block": 128, "vector": 1, "unroll": null, "note": "y", "time": 2},
 {"block": 128, "vector": 2, "note": "y", "time": 2.5}
]`

func recordedProblem(t *testing.T, seed uint64, options problems.RecordedOptions) *problems.Problem {
	t.Helper()
	rows, knobs, err := problems.ReadCSV(strings.NewReader(csvTable), "time", []string{"note"})
	if err != nil {
		t.Fatal(err)
	}
	options.Name, options.Knobs, options.Minimize = "kernel", knobs, true
	problem, err := problems.Recorded(seed, rows, options)
	if err != nil {
		t.Fatal(err)
	}
	return problem
}

func TestTablesReadAlike(t *testing.T) {
	fromCSV, knobs, err := problems.ReadCSV(strings.NewReader(csvTable), "time", []string{"note"})
	if err != nil {
		t.Fatal(err)
	}
	fromJSON, sorted, err := problems.ReadJSON(strings.NewReader(jsonTable), "time", []string{"note"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(knobs, " "); got != "block vector unroll" {
		t.Errorf("knobs %s, want them in the order of the columns", got)
	}
	if got := strings.Join(sorted, " "); got != "block unroll vector" {
		t.Errorf("knobs %s of a JSON table, want them sorted", got)
	}
	for i := range fromCSV {
		a, b := fromCSV[i], fromJSON[i]
		if a.Values.String() != b.Values.String() || math.Float64bits(a.Value) != math.Float64bits(b.Value) {
			t.Errorf("row %d: %v %v and %v %v", i, a.Values, a.Value, b.Values, b.Value)
		}
	}
}

func TestRecordedTable(t *testing.T) {
	problem := recordedProblem(t, 1, problems.RecordedOptions{FirstIsDefault: true})
	kinds := map[string]search.KnobKind{"block": search.Log2, "vector": search.Integer, "unroll": search.Categorical}
	for _, knob := range problem.Space.Knobs() {
		if knob.Kind != kinds[knob.ID] {
			t.Errorf("%s is %s, want %s", knob.ID, knob.Kind, kinds[knob.ID])
		}
	}
	values := func(block, vector int64, unroll search.Value) search.Values {
		return search.Values{"block": search.Int(block), "vector": search.Int(vector), "unroll": unroll}
	}
	if got := problem.Regret(problem.Space.Default()); got != 1.25 {
		t.Errorf("the default of 4.5 is %v above the optimum of 2, want 1.25", got)
	}
	if got := problem.Regret(problem.Best()); got != 0 || problem.Optimum() != 2 {
		t.Errorf("the best is %v from the optimum %v, want 0 and 2", got, problem.Optimum())
	}
	for name, invalid := range map[string]search.Values{
		"without a value": values(64, 2, search.Bool(true)), "not in the table": values(32, 1, search.Unset),
	} {
		if _, runs := problem.Truth(invalid); runs || problem.Observe(invalid, 1, 1).Outcome != search.Infeasible {
			t.Errorf("what is %s runs", name)
		}
	}
	sampler, err := search.New("descent")
	if err != nil {
		t.Fatal(err)
	}
	run, err := problem.Campaign(context.Background(), sampler, 18, 1)
	if err != nil {
		t.Fatal(err)
	}
	if run.After(18) != 0 || run.Crashes != 13 || run.Duplicates != 0 {
		t.Errorf("18 trials of 18 configurations end %v from the optimum, with %d crashes and %d duplicates, want 0, 13 and 0",
			run.After(18), run.Crashes, run.Duplicates)
	}
}

// TestRecordedDefaultsDiffer by seed, within the worse half.
func TestRecordedDefaultsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(20) {
		start := recordedProblem(t, seed, problems.RecordedOptions{}).Space.Default()
		seen[start.String()] = true
		if value, runs := recordedProblem(t, seed, problems.RecordedOptions{}).Truth(start); !runs || value < 3 {
			t.Errorf("seed %d: the default takes %v, want one of the worse half", seed, value)
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d defaults, want the 3 of the worse half", len(seen))
	}
}

func TestRecordedConstraints(t *testing.T) {
	problem := recordedProblem(t, 1, problems.RecordedOptions{FirstIsDefault: true, Constraints: []string{"block < 128"}})
	if problem.Optimum() != 3 {
		t.Errorf("the optimum is %v, want 3: a constraint rejects the others", problem.Optimum())
	}
}

func TestBadTablesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, objective, want string }{
		"no rows":       {"a,time\n", "time", "at least one configuration"},
		"no objective":  {"a,time\n1,2\n", "seconds", "no column seconds, only a, time"},
		"bad value":     {"a,time\n1,2\n2,fast\n", "time", "line 3"},
		"negative":      {"a,time\n1,-2\n", "time", "above 0"},
		"ragged":        {"a,time\n1\n", "time", "wrong number of fields"},
		"all are empty": {"a,time\n1,\n", "time", "none of its 1 rows has a value"},
	} {
		rows, knobs, err := problems.ReadCSV(strings.NewReader(c.text), c.objective, nil)
		if err == nil {
			_, err = problems.Recorded(1, rows, problems.RecordedOptions{Name: name, Knobs: knobs})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}
