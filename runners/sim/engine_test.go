package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// newTestEngine makes the engine of a launch that is up.
func newTestEngine(t *testing.T, counter int, args []string, env map[string]string) *engine {
	t.Helper()
	o, err := parseOptions(args)
	if err != nil {
		t.Fatal(err)
	}
	l := plan(o, env)
	log := &logger{stdout: io.Discard, stderr: io.Discard, interval: 40, scale: o.servingScale}
	e := newEngine(l.performance, newNoise(o, counter, l.identity()), log, func(why failure) { t.Errorf("died: %v", why.lines) })
	e.launch = counter + 1
	return e
}

// drive runs a closed loop of requests and returns the unscaled output rate.
func drive(t *testing.T, e *engine, w Workload, requests int, pause time.Duration) float64 {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var engine, clients sync.WaitGroup
	engine.Go(func() { e.run(ctx) })
	begin := time.Now()
	for client := range w.Concurrency {
		clients.Go(func() {
			for i := range requests {
				p := newPrompt(w.PromptTokens, func(token int) string { return fmt.Sprint(client, i, token) })
				r := &request{ctx: ctx, prompt: p, limit: w.OutputTokens}
				e.submit(r)
				if err := r.follow(ctx, false, func(snapshot, int) error { return nil }); err != nil {
					t.Error(err)
				}
				time.Sleep(pause)
			}
		})
	}
	clients.Wait()
	took := time.Since(begin).Seconds() * e.scale
	cancel()
	engine.Wait()
	return float64(w.Concurrency*requests*w.OutputTokens) / took
}

var quiet = []string{"--sim-launch-noise=0", "--sim-round-noise=0"}

// What is served is what was predicted.
func TestServingRateMatchesPrediction(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		env  map[string]string
		Workload
		scale int
	}{
		{"untuned", story, nil, Workload{64, 128, 1}, 50},
		{"tuned", story, sixSettings, Workload{64, 512, 1}, 50},
		{"2 steps", eagle(2), sixSettings, Workload{64, 128, 1}, 50},
		{"5 steps", eagle(5), sixSettings, Workload{64, 256, 1}, 50},
		{"8 at once", story, sixSettings, Workload{64, 128, 8}, 50},
		{"8 at once, 2 steps", eagle(2), sixSettings, Workload{200, 128, 8}, 50},
		{"unscaled", eagle(2), sixSettings, Workload{64, 128, 1}, 1},
		{"steps shorter than a wake-up", eagle(2), sixSettings, Workload{64, 512, 1}, 1000},
		{"tree", eagle(2, "--speculative-eagle-topk=4", "--speculative-num-draft-tokens=6"), nil, Workload{64, 256, 1}, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				args := with(append(c.args, quiet...), fmt.Sprintf("--sim-serving-scale=%d", c.scale))
				want := predict(t, args, c.env).ThroughputOf(c.Workload)
				got := drive(t, newTestEngine(t, 0, args, c.env), c.Workload, 12, 0)
				if math.Abs(got/want-1) > 0.01 {
					t.Errorf("%.2f tok/s, predicted %.2f (%+.2f %%)", got, want, 100*(got/want-1))
				}
			})
		})
	}
}

// A client's own turn-around, which scaling would blow up, does not count.
func TestTurnaroundIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		args := with(append(story, quiet...), "--sim-serving-scale=50")
		w := Workload{64, 128, 1}
		want := predict(t, args, sixSettings).ThroughputOf(w)
		got := drive(t, newTestEngine(t, 0, args, sixSettings), w, 20, 500*time.Microsecond)
		if math.Abs(got/want-1) > 0.01 {
			t.Errorf("%.2f tok/s with pauses of 0.5 ms, predicted %.2f", got, want)
		}
	})
}

// lateLog holds the engine up whenever it prints the state of the batch, as a busy
// machine does.
type lateLog struct{ by time.Duration }

func (l lateLog) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("Decode batch")) {
		time.Sleep(l.by)
	}
	return len(text), nil
}

// An answer whose last token leaves late delays no later answer.
func TestLateLastTokenIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		args := with(append(story, quiet...), "--sim-serving-scale=50")
		w := Workload{64, 512, 1}
		want := predict(t, args, sixSettings).ThroughputOf(w)
		e := newTestEngine(t, 0, args, sixSettings)
		e.log.stderr, e.log.interval = lateLog{20 * time.Millisecond}, w.OutputTokens-1 // with the last step of each answer
		if got := drive(t, e, w, 20, 500*time.Microsecond); math.Abs(got/want-1) > 0.015 {
			t.Errorf("%.2f tok/s with last tokens that are 20 ms late, predicted %.2f", got, want)
		}
	})
}

// But the first request after a rest starts when it arrives.
func TestFirstTokenAfterARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		args := with(append(story, quiet...), "--sim-serving-scale=50")
		e := newTestEngine(t, 0, args, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var engine sync.WaitGroup
		engine.Go(func() { e.run(ctx) })
		for range 3 {
			time.Sleep(time.Second)
			r := &request{ctx: ctx, prompt: promptOfText("a b"), limit: 1}
			begin := time.Now()
			e.submit(r)
			if _, err := r.next(ctx); err != nil {
				t.Error(err)
			}
			want := e.perf.prefillTime(2, 0) / e.scale
			if got := toMilliseconds(time.Since(begin)); math.Abs(got-want) > 0.001 {
				t.Errorf("first token after %.3f ms, want %.3f", got, want)
			}
		}
		cancel()
		engine.Wait()
	})
}

// Tokens leave on an absolute schedule: the end of a long answer is as exact as
// its beginning.
func TestScheduleErrorDoesNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		args := append(append([]string{}, story...), quiet...)
		e := newTestEngine(t, 0, args, sixSettings)
		ctx, cancel := context.WithCancel(t.Context())
		var engine sync.WaitGroup
		engine.Go(func() { e.run(ctx) })
		const tokens = 3000
		r := &request{ctx: ctx, prompt: promptOfText("a b c"), limit: tokens}
		begin := time.Now()
		e.submit(r)
		err := r.follow(ctx, false, func(now snapshot, _ int) error {
			want := e.perf.prefillTime(3, 0) + float64(now.tokens-1)*e.perf.stepTime(1)
			if got := toMilliseconds(time.Since(begin)); math.Abs(got-want) > 0.01 {
				return fmt.Errorf("token %d left at %.3f ms, scheduled for %.3f", now.tokens, got, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		cancel()
		engine.Wait()
	})
}

// A launch is repeated exactly by its seed, number, configuration and prompts.
func TestDeterminism(t *testing.T) {
	serve := func(counter int, args ...string) (times []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			e := newTestEngine(t, counter, eagle(2, args...), sixSettings)
			ctx, cancel := context.WithCancel(t.Context())
			var engine sync.WaitGroup
			engine.Go(func() { e.run(ctx) })
			begin := time.Now()
			for i := range 3 {
				r := &request{ctx: ctx, prompt: promptOfText(fmt.Sprint("prompt ", i)), limit: 200}
				e.submit(r)
				if err := r.follow(ctx, false, func(now snapshot, _ int) error {
					times = append(times, time.Since(begin))
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
			cancel()
			engine.Wait()
		})
		return times
	}
	base := serve(0)
	if !slices.Equal(base, serve(0)) {
		t.Error("the same launch differs from itself")
	}
	for name, other := range map[string][]time.Duration{
		"launch number": serve(1), "seed": serve(0, "--sim-seed=2"), "configuration": serve(0, "--attention-backend=triton"),
	} {
		if slices.Equal(base, other) {
			t.Errorf("another %s changes nothing", name)
		}
	}
}

// Launches differ by the noise that was asked for, and drift is slow.
func TestLaunchNoiseAndDrift(t *testing.T) {
	factors := func(args ...string) (mean, sd float64, all []float64) {
		o, err := parseOptions(with(story, args...))
		if err != nil {
			t.Fatal(err)
		}
		for counter := range 400 {
			all = append(all, newNoise(o, counter, 7).launch)
		}
		for _, x := range all {
			mean += x / float64(len(all))
		}
		for _, x := range all {
			sd += (x - mean) * (x - mean) / float64(len(all))
		}
		return mean, math.Sqrt(sd), all
	}
	if mean, sd, _ := factors(); math.Abs(mean-1) > 0.005 || math.Abs(sd-0.015) > 0.003 {
		t.Errorf("mean %.4f, standard deviation %.4f, want 1 and 0.015", mean, sd)
	}
	_, _, all := factors("--sim-launch-noise=0", "--sim-drift=0.04")
	if all[0] != 1 || math.Abs(all[driftLaunches]-1.04) > 1e-9 {
		t.Errorf("drift from %.4f to %.4f over %d launches, want 1 to 1.04", all[0], all[driftLaunches], driftLaunches)
	}
}

// Speed varies within a launch, slowly and by the share that was asked for.
func TestRoundNoise(t *testing.T) {
	o, err := parseOptions(with(story, "--sim-launch-noise=0", "--sim-round-noise=0.02"))
	if err != nil {
		t.Fatal(err)
	}
	n := newNoise(o, 0, 7)
	var values []float64
	for range 20000 {
		values = append(values, n.step())
		for range noiseBlock - 1 {
			n.step()
		}
	}
	var square, neighbour float64
	for i, x := range values[1:] {
		square += (x - 1) * (x - 1)
		neighbour += (x - 1) * (values[i] - 1)
	}
	sd := math.Sqrt(square / float64(len(values)))
	if math.Abs(sd-0.02) > 0.003 || neighbour/square < 0.9 {
		t.Errorf("standard deviation %.4f, correlation of blocks %.2f", sd, neighbour/square)
	}
}

func TestLaunchCounter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	var group sync.WaitGroup
	var mu sync.Mutex
	var seen []int
	for range 20 {
		group.Go(func() {
			count, err := countLaunch(path)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, count)
		})
	}
	group.Wait()
	slices.Sort(seen)
	for i, count := range seen {
		if count != i {
			t.Fatalf("launches counted %v", seen)
		}
	}
}

// The same prompt has the same answer under every healthy configuration.
func TestAnswersDependOnThePromptAlone(t *testing.T) {
	body := `{"prompt":"the same prompt","max_tokens":64,"ignore_eos":true}`
	answer := func(env []string, args ...string) string {
		_, text := start(t, env, args...).post(t, "/v1/completions", body)
		return *decode[completion](t, text).Choices[0].Text
	}
	base := answer(nil)
	if tuned := answer(environmentList(sixSettings), eagle(4)...); tuned != base {
		t.Errorf("%q and %q", base, tuned)
	}
	if torn := answer([]string{"NCCL_PROTO=LL128"}); torn == base {
		t.Error("LL128 by force answers rightly")
	}
	if fault := answer(nil, "--sim-faults=wrong-answers"); fault == base {
		t.Error("the fault wrong-answers answers rightly")
	}
}
