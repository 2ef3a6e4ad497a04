package load

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"nocturne/runners"
)

// observed is a round of ten requests of a second, TTFT 100 ms and chunks 20 ms
// apart, during which the generator did as told.
func observed(change func(*tally)) RoundOutcome {
	t := newTally(RoundSpec{Prompts: prompts(10), Concurrency: 1, OutputTokens: 46}, OpenAICompletions)
	started := time.Now()
	for i := range 10 {
		r := &response{sent: started.Add(time.Duration(i) * time.Second), counted: true, summary: summary{prompt: 10, produced: 46, cached: unknown}}
		for k := range 46 {
			r.chunk(r.sent.Add(100*ms+time.Duration(k)*20*ms), k+1)
		}
		r.last, r.end = r.lastChunk, r.lastChunk
		t.note(i, started, timing{ready: r.sent}, r, nil)
	}
	t.client.wall, t.client.cores, t.client.processor = 10*time.Second, 4, 4*time.Second
	t.client.lag.add(500*time.Microsecond, 1000)
	change(&t)
	return t.outcome(nil)
}

func lag(d time.Duration) func(*tally) {
	return func(t *tally) { t.client.lag = newDistribution(); t.client.lag.add(d, 1000) }
}

func delay(d time.Duration) func(*tally) {
	return func(t *tally) {
		for i := range t.requests {
			t.requests[i].delay = d
		}
	}
}

func TestVerdict_ClientLimited(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*tally)
		want   string // in the message; empty: the point counts
	}{
		{"idle", func(*tally) {}, ""},
		{"three of four cores", func(t *tally) { t.client.processor = 30 * time.Second }, ""},
		{"nearly all cores", func(t *tally) { t.client.processor = 38 * time.Second }, "used 95 % of its 4 cores"},
		{"a lag of a timer's grain", lag(1900 * time.Microsecond), ""},
		{"a lag of a tenth of the gaps", lag(2100 * time.Microsecond), "woke up 2.1 ms late on average, where times of 20.0 ms"},
		{"late by little", delay(40 * ms), ""},
		{"late by a tenth", delay(100 * ms), "sent requests of 1000 ms 100.0 ms late"},
		{"behind its schedule", func(t *tally) { t.lastDue, t.lastDelay = 10*time.Second, 600*ms }, "0.60 s after its time, on a schedule of 10.00 s"},
		{"a little behind", func(t *tally) { t.lastDue, t.lastDelay = 10*time.Second, 400*ms }, ""},
		{"too short to tell", func(t *tally) { t.client.processor, t.client.wall = 4*time.Second, 900*ms }, ""},
		{"a simulated server", func(t *tally) { t.client.processor, t.scale = 40*time.Second, 20 }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := observed(test.change)
			if test.want == "" {
				if o.Verdict.Outcome != runners.Complete {
					t.Errorf("verdict %+v", o.Verdict)
				}
				return
			}
			if o.Verdict.Outcome != runners.Invalid || o.Verdict.Failures[0].Reason != ReasonClientLimited ||
				o.Verdict.Failures[0].Class != runners.ClassTransient || !strings.Contains(o.Verdict.Failures[0].Message, test.want) {
				t.Errorf("verdict %+v, want %q", o.Verdict, test.want)
			}
		})
	}
}

// Rounds that are joined are judged together.
func TestPool_JoinsTheClientsLoad(t *testing.T) {
	calm, busy := observed(func(*tally) {}), observed(func(t *tally) { t.client.processor = 40 * time.Second })
	o := Pool(calm, busy)
	within(t, o, MetricClientBusy, (0.1+1)/2, 1e-9)
	within(t, o, "mean_client_lag_ms", 0.5, 1e-9)
	if o.Verdict.Outcome != runners.Complete {
		t.Errorf("verdict %+v", o.Verdict)
	}
	if again := Pool(Pool(calm, busy), calm); math.Abs(again.Metrics[MetricClientBusy]-0.4) > 1e-9 {
		t.Errorf("busy %v in all three, want 0.4", again.Metrics[MetricClientBusy])
	}
}

// A generator that computes on every core instead of waiting is found out by its
// own processor time.
func TestRound_MeasuresItself(t *testing.T) {
	virtual(t, func(t *testing.T) {
		client := serve(t, OpenAICompletions, script(completion(100*ms, 100*ms, 10, 10)...))
		used := time.Duration(0)
		client.processor = func() time.Duration { // all that there is since the last call
			used += 4 * time.Second * time.Duration(runtime.GOMAXPROCS(0))
			return used
		}
		o, err := client.Round(t.Context(), RoundSpec{Prompts: prompts(4), Concurrency: 1, OutputTokens: 10})
		if err != nil {
			t.Fatal(err)
		}
		wantMetric(t, o, MetricClientBusy, 1)
		wantMetric(t, o, "p99_client_lag_ms", 0) // virtual time is punctual
		if o.Verdict.Outcome != runners.Invalid || o.Verdict.Failures[0].Reason != ReasonClientLimited {
			t.Errorf("verdict %+v", o.Verdict)
		}
	})
}

func TestProcessorTime_Grows(t *testing.T) {
	before := processorTime()
	for deadline := time.Now().Add(time.Minute); processorTime() == before; {
		if time.Now().After(deadline) {
			t.Fatal("a minute of computing used no processor time")
		}
	}
}
