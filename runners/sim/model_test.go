package sim

import (
	"maps"
	"math"
	"strconv"
	"testing"
)

// story is the machine and the model of the published figures.
var story = []string{"--model-path=/models/Kimi-K2.5-INT4", "--tp=8"}

// sixSettings are the published NCCL settings.
var sixSettings = map[string]string{
	"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring", "NCCL_P2P_LEVEL": "SYS",
	"NCCL_MAX_NCHANNELS": "16", "NCCL_BUFFSIZE": "16777216", "NCCL_NTHREADS": "512",
}

func with(args []string, more ...string) []string {
	return append(append([]string{}, args...), more...)
}

// eagle is the story with EAGLE-3.
func eagle(steps int, more ...string) []string {
	args := with(story, "--speculative-algorithm=EAGLE3", "--speculative-draft-model-path=/models/k25-eagle3",
		"--speculative-num-steps", strconv.Itoa(steps), "--speculative-eagle-topk", "1")
	return append(args, more...)
}

func predict(t *testing.T, args []string, env map[string]string) Prediction {
	t.Helper()
	p, err := Predict(args, env)
	if err != nil {
		t.Fatalf("Predict(%q, %v): %v", args, env, err)
	}
	return p
}

func edited(env map[string]string, pairs ...string) map[string]string {
	out := maps.Clone(env)
	if out == nil {
		out = map[string]string{}
	}
	for i := 0; i < len(pairs); i += 2 {
		if out[pairs[i]] = pairs[i+1]; pairs[i+1] == "" {
			delete(out, pairs[i])
		}
	}
	return out
}

// published lists the figures of the story that agree with each other.
func published(t *testing.T) []figure {
	ms := func(p Prediction, get func(Prediction) float64) float64 { return get(p) }
	rate := func(p Prediction) float64 { return p.OutputThroughput }
	verify := func(p Prediction) float64 { return toMilliseconds(p.Verify) }
	acceptance := func(p Prediction) float64 { return 100 * p.AcceptanceRate }
	return []figure{
		{"without speculation, untuned", "tok/s", 62.9, ms(predict(t, story, nil), rate)},
		{"without speculation, six settings", "tok/s", 88.8, ms(predict(t, story, sixSettings), rate)},
		{"EAGLE-3, 5 steps, untuned", "tok/s", 71.3, ms(predict(t, eagle(5), nil), rate)},
		{"EAGLE-3, 5 steps, six settings", "tok/s", 86.7, ms(predict(t, eagle(5), sixSettings), rate)},
		{"EAGLE-3, 2 steps, six settings", "tok/s", 94.0, ms(predict(t, eagle(2), sixSettings), rate)},
		{"verify pass, 2 steps, untuned", "ms", 25.6, ms(predict(t, eagle(2), nil), verify)},
		{"verify pass, 2 steps, six settings", "ms", 18.7, ms(predict(t, eagle(2), sixSettings), verify)},
		{"acceptance, 2 steps", "%", 47, ms(predict(t, eagle(2), sixSettings), acceptance)},
	}
}

type figure struct {
	name, unit       string
	published, model float64
}

func (f figure) deviation() float64 { return f.model/f.published - 1 }

func TestPublishedFigures(t *testing.T) {
	for _, f := range published(t) {
		if math.Abs(f.deviation()) > 0.02 {
			t.Errorf("%s: %.2f %s, published %.1f (%+.1f %%)", f.name, f.model, f.unit, f.published, 100*f.deviation())
		}
	}
}

func TestTwoStepsAreBest(t *testing.T) {
	best := predict(t, eagle(2), sixSettings).OutputThroughput
	for steps := 1; steps <= 10; steps++ {
		if rate := predict(t, eagle(steps), sixSettings).OutputThroughput; steps != 2 && rate >= best {
			t.Errorf("%d steps give %.1f tok/s, 2 steps %.1f", steps, rate, best)
		}
	}
}
