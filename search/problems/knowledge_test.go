package problems_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"nocturne/search"
	"nocturne/search/problems"
)

// correlation of two lists.
func correlation(x, y []float64) float64 {
	n := float64(len(x))
	var sx, sy, xx, yy, xy float64
	for i := range x {
		sx, sy = sx+x[i], sy+y[i]
		xx, yy, xy = xx+x[i]*x[i], yy+y[i]*y[i], xy+x[i]*y[i]
	}
	return (n*xy - sx*sy) / math.Sqrt((n*xx-sx*sx)*(n*yy-sy*sy))
}

// randomValues draws a configuration that runs.
func randomValues(p *problems.Problem, random *rand.Rand) search.Values {
	for {
		partial := search.Values{}
		for _, knob := range p.Space.Knobs() {
			partial[knob.ID] = knob.Levels[random.IntN(len(knob.Levels))]
		}
		values, err := p.Space.Complete(partial)
		if err != nil {
			panic(err)
		}
		if _, runs := p.Truth(values); runs {
			return values
		}
	}
}

// TestScreeningsCorrelateAsStated compares the logarithms of the screening with
// those of the objective at the same settings. A sample of 1,500 has a standard
// error of 0.01 at 0.8, and of 0.026 at 0.
func TestScreeningsCorrelateAsStated(t *testing.T) {
	tests := map[string]problems.ScreeningOptions{
		"independent": {Correlation: 0.8},
		"systematic":  {Correlation: 0.8, Systematic: true},
		"collectives": {Correlation: 0.8, CollectivesOnly: true},
		"unrelated":   {Correlation: 0, Systematic: true},
		"reversed":    {Correlation: -0.5, Systematic: true},
	}
	for name, options := range tests {
		options.Measurements = 1500
		for seed := range uint64(3) {
			problem := problems.Server(seed).WithScreening(options)
			related := problem.Related[0]
			if !related.Minimize || len(related.History) != options.Measurements {
				t.Fatalf("%s: minimize %v, %d measurements", name, related.Minimize, len(related.History))
			}
			var screened, truth []float64
			for _, o := range related.History {
				whole, err := problem.Space.Complete(o.Values)
				if err != nil {
					t.Fatal(err)
				}
				if options.CollectivesOnly && len(o.Values) != 6 {
					t.Fatalf("%s: %v names other knobs than NCCL's six", name, o.Values)
				}
				// What crashes beside the defaults of the other knobs ran in the screening.
				if value, runs := problem.Truth(whole); runs {
					screened, truth = append(screened, -math.Log(o.Value)), append(truth, math.Log(value))
				}
			}
			if got := correlation(screened, truth); math.Abs(got-options.Correlation) > 0.08 {
				t.Errorf("%s, seed %d: correlation %.3f, want %.1f", name, seed, got, options.Correlation)
			}
		}
	}
}

// TestSiblingsKeepEverythingButTheEffects: how much of the optimum is lost when the
// effects are off by 5 and 15 %, and everything of an unrelated problem.
func TestSiblingsKeepEverythingButTheEffects(t *testing.T) {
	const seeds = 16
	lost := func(of func(*problems.Problem) *problems.Problem) float64 {
		var regrets []float64
		for seed := range uint64(seeds) {
			problem := problems.Server(seed)
			other := of(problem)
			if other.Space != problem.Space {
				t.Fatal("another space")
			}
			regrets = append(regrets, problem.Regret(other.Best()))
		}
		slices.Sort(regrets)
		return regrets[seeds/2]
	}
	for _, c := range []struct {
		name        string
		least, most float64
		of          func(*problems.Problem) *problems.Problem
	}{
		{"sibling, effects as they are", 0, 0, func(p *problems.Problem) *problems.Problem { return p.Sibling(0) }},
		{"sibling, 5 % off", 0.01, 0.035, func(p *problems.Problem) *problems.Problem { return p.Sibling(0.05) }},
		{"sibling, 15 % off", 0.05, 0.12, func(p *problems.Problem) *problems.Problem { return p.Sibling(0.15) }},
		{"unrelated", 0.2, 0.6, (*problems.Problem).Unrelated},
	} {
		if got := lost(c.of); got < c.least || got > c.most {
			t.Errorf("%s: its optimum is %.3f from the problem's, want %v to %v", c.name, got, c.least, c.most)
		}
	}
}

// TestSiblingsCrashAlike: the crash rules are the hardware's.
func TestSiblingsCrashAlike(t *testing.T) {
	problem := problems.Server(3)
	if got, want := problem.Sibling(0.15).CrashShare(), problem.CrashShare(); math.Abs(got-want) > 0.02 {
		t.Errorf("%v of the sibling's configurations crash, %v of the problem's", got, want)
	}
}

func TestRecipesFitOrNot(t *testing.T) {
	for seed := range uint64(10) {
		problem := problems.Server(seed)
		fits := problem.WithRecipe(true).Starts
		if len(fits) != 1 {
			t.Fatalf("%d starts, want 1", len(fits))
		}
		if regret := problem.Regret(fits[0].Values); regret < 0.01 || regret > 0.03 {
			t.Errorf("seed %d: the recipe is %v from the optimum, want 1 to 3 %%", seed, regret)
		}
		if err := problem.Space.Check(fits[0].Values); err != nil {
			t.Error(err)
		}
		foreign := problem.WithRecipe(false).Starts[0].Values
		if regret := problem.Regret(foreign); regret < 0.05 {
			t.Errorf("seed %d: the recipe of another problem is %v from the optimum", seed, regret)
		}
	}
}

// TestLimitsCutOffTheBest: the limit spares the default, cuts off the best
// configuration and about as many others as asked for.
func TestLimitsCutOffTheBest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for seed := range uint64(4) {
		problem := problems.Server(seed)
		limited := problem.WithLimit(0.6)
		if !limited.Keeps(limited.Space.Default()) || !limited.Keeps(limited.Best()) || limited.Keeps(problem.Best()) {
			t.Errorf("seed %d: the default keeps %v, the best %v, the best without a limit %v", seed,
				limited.Keeps(limited.Space.Default()), limited.Keeps(limited.Best()), limited.Keeps(problem.Best()))
		}
		if limited.Optimum() >= problem.Optimum() {
			t.Errorf("seed %d: the limit costs nothing", seed)
		}
		if got, want := limited.Regret(problem.Best()), limited.Regret(problem.Space.Default()); got != want {
			t.Errorf("seed %d: what breaks the limit counts %v, want %v as the default", seed, got, want)
		}
		const draws = 500
		broken := 0
		for range draws {
			values := randomValues(limited, random)
			observation := limited.Observe(values, 1, 1)
			margin, told := observation.Margins[problems.TimeToFirstToken]
			if !told || math.Abs(margin) > 0.15 && (margin >= 0) != limited.Keeps(values) {
				t.Fatalf("margin %v, keeps the limit %v", margin, limited.Keeps(values))
			}
			if !limited.Keeps(values) {
				broken++
			}
		}
		if share := float64(broken) / draws; share < 0.1 || share > 0.68 {
			t.Errorf("seed %d: %v of random configurations break the limit", seed, share)
		}
	}
}

// TestCountersAddUp: the acceptance length has noise of its own, depends on the
// speculative knobs alone, and changes nothing in the throughput observed.
func TestCountersAddUp(t *testing.T) {
	problem := problems.Server(2)
	counted := problem.WithCounters()
	random := rand.New(rand.NewPCG(1, 2))
	if factor := counted.Factors[0]; factor.Power != 1 || len(factor.Knobs) != 3 {
		t.Fatalf("declared %+v, want the three speculative knobs to the power 1", factor)
	}
	values := randomValues(problem, random)
	for values["speculative.steps"] == search.Int(0) {
		values = randomValues(problem, random)
	}
	const launches = 4000
	var lengths, steps []float64
	for trial := range launches {
		o := counted.Observe(values, 1, trial)
		if blind := problem.Observe(values, 1, trial); blind.Value != o.Value || blind.Factors != nil {
			t.Fatalf("with counters %v, without %v", o, blind)
		}
		length := o.Factors[problems.AcceptanceLength]
		lengths, steps = append(lengths, math.Log(length)), append(steps, math.Log(length/o.Value))
	}
	if got := deviation(lengths); math.Abs(got-0.012) > 0.0006 {
		t.Errorf("the acceptance length varies by %.4f, want 0.012", got)
	}
	if got := deviation(steps); math.Abs(got-0.009) > 0.0005 {
		t.Errorf("the step time varies by %.4f, want 0.009", got)
	}
	if got := correlation(lengths, steps); math.Abs(got) > 0.06 {
		t.Errorf("acceptance length and step time have a correlation of %.3f, want none", got)
	}
	off := counted.Observe(problem.Space.Default(), 1, 1)
	if length := off.Factors[problems.AcceptanceLength]; length != 1 {
		t.Errorf("without speculation the acceptance length is %v, want 1", length)
	}
}

func deviation(list []float64) float64 {
	mean, square := 0.0, 0.0
	for _, x := range list {
		mean += x / float64(len(list))
	}
	for _, x := range list {
		square += (x - mean) * (x - mean) / float64(len(list))
	}
	return math.Sqrt(square)
}

// TestLaunchesThatSpeculateVaryMore where the problem says so.
func TestLaunchesThatSpeculateVaryMore(t *testing.T) {
	problem := problems.Server(2)
	problem.Noise, problem.SpeculationNoise, problem.RoundShare = 0.005, 0.05, 0.5
	plain := problem.Space.Default()
	speculating, err := problem.Space.Complete(search.Values{"speculative.steps": search.Int(2)})
	if err != nil {
		t.Fatal(err)
	}
	for want, values := range map[float64]search.Values{0.005: plain, 0.05: speculating} {
		var logs []float64
		for trial := range 2000 {
			o := problem.Observe(values, 1, trial)
			logs = append(logs, math.Log(o.Value))
			if math.Abs(o.StandardError/o.Value-want/2) > 1e-9 {
				t.Fatalf("standard error %v of %v, want half of %v", o.StandardError, o.Value, want)
			}
		}
		if got := deviation(logs); math.Abs(got/want-1) > 0.08 {
			t.Errorf("launches vary by %v, want %v", got, want)
		}
	}
}

// TestEarlierCampaignsAreTold with all their trials and their two best as starts.
func TestEarlierCampaignsAreTold(t *testing.T) {
	problem := problems.Server(1)
	sampler, err := search.New("descent")
	if err != nil {
		t.Fatal(err)
	}
	run, err := problem.Sibling(0.05).Campaign(context.Background(), sampler, 12, 1)
	if err != nil {
		t.Fatal(err)
	}
	told := problem.WithEarlier(run)
	if len(told.Related) != 1 || len(told.Related[0].History) != 12 || len(told.Starts) != 2 || len(problem.Related) != 0 {
		t.Fatalf("%d related, %d starts", len(told.Related), len(told.Starts))
	}
	again, err := told.Campaign(context.Background(), sampler, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	for n, start := range told.Starts {
		if got := again.History[n+1].Values; problem.Space.Key(got) != problem.Space.Key(start.Values) {
			t.Errorf("trial %d is %v, want the earlier campaign's %v", n+2, got, start.Values)
		}
	}
}
