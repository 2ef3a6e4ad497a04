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

// figure is a published number beside the model's.
type figure struct {
	name, unit       string
	published, model float64
}

func (f figure) deviation() float64 { return f.model/f.published - 1 }

// published lists the figures of the story that agree with each other.
func published(t *testing.T) []figure {
	rate := func(args []string, env map[string]string) float64 { return predict(t, args, env).OutputThroughput }
	verify := func(args []string, env map[string]string) float64 {
		return toMilliseconds(predict(t, args, env).Verify)
	}
	return []figure{
		{"no speculation, untuned", "tok/s", 62.9, rate(story, nil)},
		{"no speculation, six settings", "tok/s", 88.8, rate(story, sixSettings)},
		{"EAGLE-3, 5 steps, untuned", "tok/s", 71.3, rate(eagle(5), nil)},
		{"EAGLE-3, 5 steps, six settings", "tok/s", 86.7, rate(eagle(5), sixSettings)},
		{"EAGLE-3, 2 steps, six settings", "tok/s", 94.0, rate(eagle(2), sixSettings)},
		{"gain of 2 steps over no speculation, six settings", "%", 5.9, 100 * (rate(eagle(2), sixSettings)/rate(story, sixSettings) - 1)},
		{"verify pass, 2 steps, untuned", "ms", 25.6, verify(eagle(2), nil)},
		{"verify pass, 2 steps, six settings", "ms", 18.7, verify(eagle(2), sixSettings)},
		{"acceptance rate, 2 steps", "%", 47, 100 * predict(t, eagle(2), sixSettings).AcceptanceRate},
	}
}

func TestPublishedFigures(t *testing.T) {
	for _, f := range published(t) {
		if math.Abs(f.deviation()) > 0.02 {
			t.Errorf("%s: %.2f %s, published %.1f (%+.1f %%)", f.name, f.model, f.unit, f.published, 100*f.deviation())
		}
	}
	for steps := 2; steps <= 5; steps++ {
		if rate := predict(t, eagle(steps), nil).OutputThroughput; rate < 70.9 || rate > 76 {
			t.Errorf("untuned with %d steps: %.1f tok/s, published 71 to 76", steps, rate)
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
