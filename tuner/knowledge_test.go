package tuner_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner"
)

// spy is a sampler that keeps what it is told.
type spy struct {
	search.Sampler
	mutex    sync.Mutex
	requests []search.Request
	// change, if set, edits a proposal by the number of the ask from 1.
	change func(ask int, proposed *search.Proposal)
}

func (s *spy) Ask(ctx context.Context, request search.Request) (search.Proposal, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.requests = append(s.requests, request)
	proposed, err := s.Sampler.Ask(ctx, request)
	if s.change != nil && err == nil {
		s.change(len(s.requests), &proposed)
	}
	return proposed, err
}

func (s *spy) last(t *testing.T) search.Request {
	t.Helper()
	if len(s.requests) == 0 {
		t.Fatal("the sampler was not asked")
	}
	return s.requests[len(s.requests)-1]
}

// spied runs a campaign to its end and returns what its sampler was told.
func spied(t *testing.T, s store.Store, host runners.Host, text string, change func(int, *search.Proposal)) (tuner.Outcome, *spy, *recorder) {
	t.Helper()
	watched, events := &spy{change: change}, &recorder{}
	tun := newTuner(t, s, host, events)
	tun.NewSampler = func(name string) (search.Sampler, error) {
		made, err := search.New(name)
		watched.Sampler = made
		return watched, err
	}
	return run(t, tun, campaignOf(t, text), tuner.Options{}), watched, events
}

// measuring is a host whose launches report these metrics beside the score.
func measuring(metrics func(runners.Job) runners.Metrics) *fakeHost {
	return &fakeHost{measure: func(_ int, job runners.Job) runners.Result {
		measured := metrics(job)
		return runners.Result{Outcome: runners.Complete, Points: []runners.PointResult{{Concurrency: 1, Metrics: measured, Rounds: []runners.RoundResult{{Metrics: measured}}}}}
	}}
}

const speculating = `
campaign: speculating
server: {kind: command, command: [measure]}
workload: {rounds: 1}
objective: {%s}
space:
  flags:
    --speculative-num-steps: {int: [0, 3], default: 0}
    --page-size: {choices: [1, 16], default: 1}
%s
search: {sampler: random}
seed: 7
budget: {trials: 5}
`

// The grey box: what the acceptance length is a factor of, and of what trials.
func TestAcceptanceIsToldAsAFactor(t *testing.T) {
	accepted := map[string]float64{"0": 1, "1": 1.6, "2": 2, "3": 2.2}
	host := func(report string) *fakeHost {
		return measuring(func(job runners.Job) runners.Metrics {
			length := accepted[flagValue(job, "--speculative-num-steps", "0")]
			metrics := runners.Metrics{"tokens_per_s": 50 * length, "mean_tpot_ms": 20 / length, "p99_ttft_ms": 90, "score": 7}
			if report != "" {
				metrics[report] = length
			}
			return metrics
		})
	}
	tests := map[string]struct {
		objective string
		report    string
		power     float64 // 0: no factor
	}{
		"rate of tokens":           {"maximize: tokens_per_s", "acceptance_length", 1},
		"name of the servers":      {"maximize: tokens_per_s", "spec_decode_acceptance_length", 1},
		"time per token":           {"minimize: mean_tpot_ms", "acceptance_length", -1},
		"time to the first token":  {"minimize: p99_ttft_ms", "acceptance_length", 0},
		"something else":           {"maximize: score", "acceptance_length", 0},
		"counters missing":         {"maximize: tokens_per_s", "", 0},
		"counter of another thing": {"maximize: tokens_per_s", "spec_decode_acceptance_rate", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, watched, _ := spied(t, openStore(t), host(test.report), fmt.Sprintf(speculating, test.objective, ""), nil)
			request := watched.last(t)
			if test.power == 0 {
				if len(request.Factors) > 0 || slices.ContainsFunc(request.History, func(o search.Observation) bool { return len(o.Factors) > 0 }) {
					t.Errorf("factors %+v were told of %+v", request.Factors, request.History)
				}
				return
			}
			want := []search.Factor{{Name: "acceptance length", Knobs: []string{"flag.speculative_num_steps"}, Power: test.power}}
			if diff := cmp.Diff(want, request.Factors); diff != "" {
				t.Errorf("factors (-want +got):\n%s", diff)
			}
			for _, observation := range request.History {
				steps := observation.Values["flag.speculative_num_steps"].String()
				if got := observation.Factors["acceptance length"]; math.Abs(got-accepted[steps]) > 1e-9 {
					t.Errorf("trial %d at %s steps: acceptance length %g, want %g", observation.Trial, steps, got, accepted[steps])
				}
			}
		})
	}
}

func TestLimitsAreToldAsMargins(t *testing.T) {
	host := measuring(func(job runners.Job) runners.Metrics {
		metrics := runners.Metrics{"score": bowl(job), "latency": 250, "rate": 5}
		if flagValue(job, "--b", "slow") == "fast" {
			metrics["latency"] = 1000
		}
		if flagValue(job, "--c", "p") == "q" {
			delete(metrics, "rate")
		}
		return metrics
	})
	text := strings.Replace(fmt.Sprintf(campaignFile, "", 20), "maximize: score}", "maximize: score, limits: {latency: {max: 500}, rate: {min: 10}}}", 1)
	_, watched, _ := spied(t, openStore(t), host, text, nil)
	for _, observation := range watched.last(t).History {
		values := observation.Values
		want := map[string]float64{"latency": math.Log(2), "rate": math.Log(0.5)}
		if values["flag.b"] == search.Text("fast") {
			want["latency"] = math.Log(0.5)
		}
		outcome := search.Measured
		if values["flag.c"] == search.Text("q") {
			want, outcome = nil, search.Infeasible // nobody knows by how much
		}
		close := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
		if observation.Outcome != outcome || !maps.EqualFunc(observation.Margins, want, close) {
			t.Errorf("%s: outcome %d with margins %v, want %d with %v", values, observation.Outcome, observation.Margins, outcome, want)
		}
	}
}

// The boundary belongs to what is allowed, and zero has no ratio.
func TestMarginsAtTheEdge(t *testing.T) {
	host := measuring(func(runners.Job) runners.Metrics {
		return runners.Metrics{"score": 1, "exact": 500, "over": math.Nextafter(500, 501), "none": 0, "some": 3, "huge": 1e12}
	})
	limits := "exact: {max: 500}, over: {max: 500}, none: {max: 0}, some: {max: 0}, huge: {max: 1, min: 1}"
	text := strings.Replace(fmt.Sprintf(campaignFile, "", 1), "maximize: score}", "maximize: score, limits: {"+limits+"}}", 1)
	_, watched, _ := spied(t, openStore(t), host, text, nil)
	margins := watched.last(t).History[0].Margins
	if margins["exact"] != 0 || margins["over"] >= 0 || margins["none"] <= 0 || margins["some"] >= 0 || margins["huge"] != -math.Log(10) || len(margins) != 5 {
		t.Errorf("margins %v", margins)
	}
}

// earlierFile is a campaign that the bowl campaign can learn from: it lacks --c,
// has more of --a, and something else.
const earlierFile = `
campaign: earlier
model: %s
server: {kind: command, command: [measure]}
workload: {rounds: 1}
objective: {maximize: score}
space:
  flags:
    --a: {int: [1, 5], default: 1}
    --b: {choices: [slow, fast], default: slow}
    --d: {choices: [x, y], default: x}
search: {sampler: random}
seed: 3
budget: {trials: 18}
`

// infeasibleAt2 is a bowl with a hole.
func infeasibleAt2(_ int, job runners.Job) runners.Result {
	if flagValue(job, "--a", "1") == "2" {
		return failing(runners.ClassInfeasible, 0, runners.ClassInfeasible, "out_of_memory")
	}
	return runners.Result{}
}

func TestEarlierCampaignsAreTold(t *testing.T) {
	s := openStore(t)
	host := &fakeHost{value: bowl, measure: infeasibleAt2}
	earlier, _, _ := spied(t, s, host, fmt.Sprintf(earlierFile, "m"), nil)
	host.measure = nil
	later, watched, _ := spied(t, s, host, fmt.Sprintf(campaignFile, "", 6), nil)
	request := watched.last(t)
	if len(request.Related) != 1 || request.Related[0].Name != "earlier run 1" || request.Related[0].Minimize {
		t.Fatalf("related are %+v, want the earlier campaign", request.Related)
	}
	type told struct {
		values  string
		outcome search.Outcome
	}
	want := map[int]told{}
	for _, trial := range trials(t, s, earlier) {
		values := trial.Configuration.Values
		if values["flag.a"] == search.Int(5) || values["flag.d"] != search.Text("x") {
			continue // no configuration of the later space
		}
		outcome := search.Measured
		if trial.State == store.TrialFailed {
			outcome = search.Infeasible
		}
		want[trial.Number] = told{search.Values{"flag.a": values["flag.a"], "flag.b": values["flag.b"], "flag.c": search.Text("p")}.String(), outcome}
	}
	got := map[int]told{}
	for _, observation := range request.Related[0].History {
		got[observation.Trial] = told{observation.Values.String(), observation.Outcome}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(told{})); diff != "" {
		t.Errorf("told of the earlier campaign (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(request.Related[0].History, func(o search.Observation) bool { return o.Outcome == search.Infeasible }) {
		t.Error("no failure of the earlier campaign is told, so the test shows nothing of them")
	}
	second := trials(t, s, later)[1]
	if second.Role != store.RoleIncumbent || !strings.HasPrefix(second.Reason, "best known of this hardware: campaign earlier run 1, ") || !strings.Contains(second.Reason, "with model m, driver 1.0") ||
		second.Configuration.Values.String() != `flag.a=3 flag.b="fast" flag.c="p"` {
		t.Errorf("trial 2 is %s: %s", second.Role, second.Reason)
	}
}

func TestWhatIsNotRelated(t *testing.T) {
	other := func(change ...string) string {
		return strings.NewReplacer(change...).Replace(fmt.Sprintf(earlierFile, "m"))
	}
	tests := map[string]struct {
		earlier string
		host    *fakeHost
		extra   string
	}{
		"history is off":     {other(), &fakeHost{}, "search: {history: false}"},
		"another machine":    {other(), &fakeHost{hardware: runners.Hardware{Key: "hw1:other"}}, ""},
		"another metric":     {other("maximize: score", "maximize: points"), &fakeHost{}, ""},
		"another direction":  {other("maximize: score", "minimize: score"), &fakeHost{}, ""},
		"no common value":    {other("[1, 5], default: 1", "[6, 9], default: 6"), &fakeHost{}, ""},
		"too few to compare": {other("trials: 18", "trials: 1", "seed: 3", "seed: 3\nconfirm: {top: 1, relaunches: 2}", "[1, 5], default: 1", "[4, 5], default: 4"), &fakeHost{}, ""},
		"nothing was measured": {other("default: x}", "default: x}\n    --fail: {choices: [p, q], default: p}"), &fakeHost{measure: func(int, runners.Job) runners.Result {
			return failing(runners.ClassInfeasible, 0, runners.ClassInfeasible, "bad_argument")
		}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			host := test.host
			host.value = bowl
			first := newTuner(t, s, host, nil)
			if host.measure == nil {
				host.measure = func(_ int, job runners.Job) runners.Result {
					metrics := runners.Metrics{"score": bowl(job), "points": bowl(job)}
					return runners.Result{Outcome: runners.Complete, Points: []runners.PointResult{{Concurrency: 1, Metrics: metrics, Rounds: []runners.RoundResult{{Metrics: metrics}}}}}
				}
			}
			run(t, first, campaignOf(t, test.earlier), tuner.Options{})
			later, watched, _ := spied(t, s, &fakeHost{value: bowl}, fmt.Sprintf(campaignFile, test.extra, 6), nil)
			request := watched.last(t)
			if len(request.Related) > 0 {
				t.Errorf("told is %+v", request.Related)
			}
			if name == "too few to compare" {
				return // its best is an incumbent all the same
			}
			if len(request.Starts) > 0 || trials(t, s, later)[1].Role != store.RoleSearch {
				t.Errorf("starts are %+v", request.Starts)
			}
		})
	}
}

// What is measured after a campaign began changes none of its proposals.
func TestLaterMeasurementsAreNotTold(t *testing.T) {
	s := openStore(t)
	stopped := &fakeHost{value: bowl}
	ctx, cancel := context.WithCancel(t.Context())
	stopped.before = func(number int) {
		if number == 4 {
			cancel()
		}
	}
	if _, err := newTuner(t, s, stopped, nil).Run(ctx, campaign(t, 6, ""), tuner.Options{}); err != nil {
		t.Fatal(err)
	}
	run(t, newTuner(t, s, &fakeHost{value: bowl}, nil), campaignOf(t, fmt.Sprintf(earlierFile, "m")), tuner.Options{})
	_, watched, _ := spied(t, s, &fakeHost{value: bowl}, fmt.Sprintf(campaignFile, "", 6), nil)
	if request := watched.last(t); len(request.Related)+len(request.Starts) > 0 {
		t.Errorf("told are %+v and %+v of a campaign that began later", request.Related, request.Starts)
	}
}

// The most similar campaigns come first, the newest of equals, and no more than
// three.
func TestMostSimilarCampaignsComeFirst(t *testing.T) {
	s := openStore(t)
	for _, name := range []string{"oldest", "same-model", "old", "new"} {
		model := "other"
		if name == "same-model" {
			model = "mine"
		}
		text := strings.Replace(fmt.Sprintf(earlierFile, model), "campaign: earlier", "campaign: "+name, 1)
		run(t, newTuner(t, s, &fakeHost{value: bowl}, nil), campaignOf(t, text), tuner.Options{})
	}
	_, watched, _ := spied(t, s, &fakeHost{value: bowl}, fmt.Sprintf(campaignFile, "model: mine", 6), nil)
	var names []string
	most := 0
	for _, related := range watched.last(t).Related {
		names = append(names, related.Name)
		most += len(related.History)
	}
	if want := []string{"same-model run 1", "new run 1", "old run 1"}; !slices.Equal(names, want) || most > 150 {
		t.Errorf("told are %v with %d measurements, want %v with at most 150", names, most, want)
	}
}
