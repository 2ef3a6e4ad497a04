package load

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"nocturne/runners"
)

// A server whose times differ from request to request and token to token, all of
// them drawn beforehand: every metric is what the draws say, to within 1 % or
// 0.1 ms.
func TestAccuracy_KnownTokenTimes(t *testing.T) {
	for _, concurrency := range []int{1, 64, 512} {
		for _, perChunk := range []int{1, 4} {
			t.Run(fmt.Sprintf("concurrency=%d/tokens-per-chunk=%d", concurrency, perChunk), func(t *testing.T) {
				virtual(t, func(t *testing.T) { accuracy(t, concurrency, perChunk) })
			})
		}
	}
}

// drawn is what one request will see.
type drawn struct {
	ttft time.Duration
	gaps []time.Duration
}

func (d drawn) latency() time.Duration {
	total := d.ttft
	for _, gap := range d.gaps {
		total += gap
	}
	return total
}

func draw(n int) []drawn {
	random := rand.New(rand.NewPCG(1, 2))
	requests := make([]drawn, n)
	for i := range requests {
		requests[i].ttft = time.Duration(50+random.ExpFloat64()*100) * ms
		for range 10 + random.IntN(20) {
			requests[i].gaps = append(requests[i].gaps, time.Duration((5+random.ExpFloat64()*10)*float64(ms)))
		}
	}
	return requests
}

func accuracy(t *testing.T, concurrency, perChunk int) {
	plan := draw(max(64, 3*concurrency))
	var mu sync.Mutex
	began := map[int]time.Time{}
	client := serve(t, OpenAICompletions, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 1<<10)
		n, _ := r.Body.Read(body)
		_, after, _ := strings.Cut(string(body[:n]), `"prompt":"prompt `)
		index, err := strconv.Atoi(strings.TrimRight(strings.Split(after, `"`)[0], " "))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		began[index] = time.Now()
		mu.Unlock()
		steps, at := []step{{plan[index].ttft, chunkEvent}}, plan[index].ttft
		for _, gap := range plan[index].gaps {
			at += gap
			steps = append(steps, step{at, chunkEvent})
		}
		script(append(steps, step{at, finishEvent + usageEvent(perChunk*len(steps)) + doneEvent})...)(w, r)
	}))
	spec := RoundSpec{Prompts: prompts(len(plan)), Concurrency: concurrency, OutputTokens: 200}
	o, err := client.Round(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if o.Verdict.Outcome != runners.Complete {
		t.Fatalf("verdict %+v, failures %+v", o.Verdict, o.Failures)
	}
	for name, want := range truth(plan, perChunk) {
		near(t, o, name, want)
	}
	first, last, tokens := began[0], began[0], 0
	for i, request := range plan {
		tokens += perChunk * (1 + len(request.gaps))
		if began[i].Before(first) {
			first = began[i]
		}
		if end := began[i].Add(request.latency()); end.After(last) {
			last = end
		}
	}
	near(t, o, "duration", last.Sub(first).Seconds())
	near(t, o, "output_throughput", float64(tokens)/last.Sub(first).Seconds())
	near(t, o, "max_concurrent_requests", float64(concurrency))
	steadyTruth(t, o, plan, began, first, concurrency, perChunk)
}

// truth is every latency metric, from the draws alone.
func truth(plan []drawn, perChunk int) runners.Metrics {
	m := runners.Metrics{}
	var ttft, tpot, latency, chunk, each []time.Duration
	for _, request := range plan {
		tokens := perChunk * (1 + len(request.gaps))
		ttft, latency = append(ttft, request.ttft), append(latency, request.latency())
		tpot = append(tpot, (request.latency()-request.ttft)/time.Duration(tokens-1))
		for _, gap := range request.gaps {
			chunk = append(chunk, gap)
			for range perChunk {
				each = append(each, gap/time.Duration(perChunk))
			}
		}
	}
	put(m, "ttft", ttft)
	put(m, "tpot", tpot)
	put(m, "e2el", latency)
	put(m, "chunk_gap", chunk)
	put(m, "itl", each)
	return m
}

// steadyTruth counts the tokens between the end of as many requests as there are
// places and the first end after which nothing is left to send.
func steadyTruth(t *testing.T, o RoundOutcome, plan []drawn, began map[int]time.Time, first time.Time, places, perChunk int) {
	t.Helper()
	var ends []time.Duration
	for i, request := range plan {
		ends = append(ends, began[i].Add(request.latency()).Sub(first))
	}
	slices.Sort(ends)
	from, to := ends[places-1], ends[len(ends)-places]
	tokens := 0.0
	for i, request := range plan {
		at := began[i].Add(request.ttft).Sub(first)
		for k := 0; ; k++ {
			if at > from && at <= to {
				tokens += float64(perChunk)
			}
			if k == len(request.gaps) {
				break
			}
			at += request.gaps[k]
		}
	}
	near(t, o, "steady_duration", (to - from).Seconds())
	near(t, o, "steady_output_throughput", tokens/(to-from).Seconds())
}
