package output

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"nocturne/runners"
	"nocturne/store"
	"nocturne/tuner/verdict"
)

func armOf(number int) string { return strconv.Itoa(number) }

// side is one campaign of a comparison with its measured launches.
type side struct {
	campaign store.Campaign
	hardware runners.Hardware
	stack    runners.Stack
	trials   []store.Trial
	// launches are the log values of each configuration, by hash, turned so that
	// larger is better.
	launches map[string][]float64
	first    map[string]store.Configuration
}

// CompareOf answers `compare`: what differs between two campaigns, and what
// each configuration measured in both of them does.
func CompareOf(ctx context.Context, s store.Store, a, b store.Campaign) (Compare, error) {
	left, err := sideOf(ctx, s, a)
	if err != nil {
		return Compare{}, err
	}
	right, err := sideOf(ctx, s, b)
	if err != nil {
		return Compare{}, err
	}
	answer := Compare{Schema: Schema, A: left.object(), B: right.object(), Differences: differences(left, right), Reasons: []string{}, Pairs: []Pair{}}
	answer.Attribution, answer.Reasons = attribution(left, right, answer.Differences)
	if answer.BestA, err = bestOf(ctx, s, a); err != nil {
		return Compare{}, err
	}
	if answer.BestB, err = bestOf(ctx, s, b); err != nil {
		return Compare{}, err
	}
	if a.Objective.Metric == b.Objective.Metric && a.Objective.Direction == b.Objective.Direction {
		answer.Pairs = pairs(left, right)
		answer.Ranking = ranking(answer.Pairs)
	} else {
		answer.Reasons = append(answer.Reasons, fmt.Sprintf("the objectives differ (%s and %s), so no values can be paired", a.Objective.Metric, b.Objective.Metric))
	}
	return answer, nil
}

func sideOf(ctx context.Context, s store.Store, campaign store.Campaign) (side, error) {
	trials, err := s.Trials(ctx, campaign.ID, store.TrialFilter{States: []store.TrialState{store.TrialComplete}})
	if err != nil {
		return side{}, err
	}
	out := side{campaign: campaign, hardware: decode[runners.Hardware](campaign.Hardware), trials: trials,
		launches: map[string][]float64{}, first: map[string]store.Configuration{}}
	for _, trial := range trials {
		if stack := decode[runners.Stack](trial.Stack); stack.Key != "" {
			out.stack = stack
		}
		if trial.Value == nil || *trial.Value <= 0 {
			continue
		}
		hash := trial.Configuration.Hash
		if _, seen := out.first[hash]; !seen {
			out.first[hash] = trial.Configuration
		}
		out.launches[hash] = append(out.launches[hash], logValue(*trial.Value, campaign.Objective.Minimize()))
	}
	return out, nil
}

func (s side) object() Side {
	return Side{Campaign: s.campaign.Name, CampaignID: s.campaign.ID, Run: s.campaign.Run, Hardware: s.hardware, Stack: s.stack,
		Objective: ObjectiveOf(s.campaign.Objective)}
}

func bestOf(ctx context.Context, s store.Store, campaign store.Campaign) (*Measured, error) {
	known, err := s.Best(ctx, store.BestFilter{CampaignID: campaign.ID, Unconfirmed: true, Limit: 1})
	if err != nil || len(known) == 0 {
		return nil, err
	}
	best := known[0]
	return &Measured{Configuration: ConfigurationOf(best.Configuration), Value: &best.Value, Interval: best.Interval, Launches: best.Launches}, nil
}

// differences lists every field of host, stack, model and workload that is not
// the same on both sides.
func differences(a, b side) []Difference {
	found := []Difference{}
	add := func(field, left, right string) {
		if left != right {
			found = append(found, Difference{Field: field, A: left, B: right})
		}
	}
	add("hardware", a.hardware.Name, b.hardware.Name)
	add("hardware_key", a.hardware.Key, b.hardware.Key)
	add("instance", a.hardware.Instance, b.hardware.Instance)
	add("cpu", a.hardware.CPU, b.hardware.CPU)
	add("driver", a.stack.Driver, b.stack.Driver)
	add("cuda", a.stack.CUDA, b.stack.CUDA)
	add("nccl", a.stack.NCCL, b.stack.NCCL)
	add("server", a.stack.Server, b.stack.Server)
	add("server_version", a.stack.ServerVersion, b.stack.ServerVersion)
	add("kernel", a.stack.Kernel, b.stack.Kernel)
	add("model", a.campaign.Model, b.campaign.Model)
	add("model_key", a.campaign.ModelKey, b.campaign.ModelKey)
	add("workload_key", a.campaign.WorkloadKey, b.campaign.WorkloadKey)
	return found
}

// attribution says what a ratio may be blamed on. A driver brings its CUDA
// with it; with anything else changed too, nothing can be told apart.
func attribution(a, b side, found []Difference) (string, []string) {
	reasons := []string{}
	driver, stack := false, false
	for _, difference := range found {
		switch difference.Field {
		case "driver":
			driver = true
		case "cuda", "instance":
		case "nccl", "server", "server_version", "kernel":
			stack = true
		default:
			reasons = append(reasons, fmt.Sprintf("not comparable: %s differs (%s, %s)", difference.Field, difference.A, difference.B))
		}
		if difference.Field == "instance" {
			reasons = append(reasons, "the two sides ran on two boxes of the same kind")
		}
	}
	switch {
	case len(reasons) > 0:
		return "none", reasons
	case stack:
		return "stack", append(reasons, "more than the driver changed, so the ratios belong to the stack as a whole")
	case driver:
		return "driver", append(reasons, "only the driver, and the CUDA version that it brings, changed")
	}
	return "none", append(reasons, "nothing that is recorded differs: the ratios are noise or an unrecorded change")
}

// pairs compares every configuration that was measured on both sides. The
// noise of a launch is pooled over all configurations of both sides that were
// launched more than once; with none of them there is no interval.
func pairs(a, b side) []Pair {
	sigma, degrees := pooled(a, b)
	found := []Pair{}
	for hash, left := range a.launches {
		right, both := b.launches[hash]
		if !both {
			continue
		}
		difference := stat.Mean(right, nil) - stat.Mean(left, nil)
		pair := Pair{Configuration: ConfigurationOf(a.first[hash]), Ratio: math.Exp(difference), Verdict: "inconclusive",
			A: measuredSide(a, hash), B: measuredSide(b, hash)}
		if degrees > 0 {
			half := distuv.StudentsT{Sigma: 1, Nu: float64(degrees)}.Quantile((1+verdict.Confidence)/2) *
				sigma * math.Sqrt(1/float64(len(left))+1/float64(len(right)))
			pair.Interval = &[2]float64{math.Exp(difference - half), math.Exp(difference + half)}
			pair.Verdict = pairVerdict(*pair.Interval)
		}
		found = append(found, pair)
	}
	slices.SortFunc(found, func(x, y Pair) int {
		return cmp.Or(cmp.Compare(y.Ratio, x.Ratio), cmp.Compare(x.Configuration.Hash, y.Configuration.Hash))
	})
	return found
}

// equivalence is the relative difference within which two sides count as
// equal.
const equivalence = 0.01

func pairVerdict(interval [2]float64) string {
	switch {
	case interval[0] > 1:
		return "faster"
	case interval[1] < 1:
		return "slower"
	case interval[0] >= 1-equivalence && interval[1] <= 1+equivalence:
		return "equivalent"
	}
	return "inconclusive"
}

func pooled(sides ...side) (sigma float64, degrees int) {
	sum := 0.0
	for _, s := range sides {
		for _, hash := range slices.Sorted(maps.Keys(s.launches)) {
			values := s.launches[hash]
			mean := stat.Mean(values, nil)
			for _, value := range values {
				sum += (value - mean) * (value - mean)
			}
			degrees += len(values) - 1
		}
	}
	if degrees == 0 {
		return 0, 0
	}
	return math.Sqrt(sum / float64(degrees)), degrees
}

func measuredSide(s side, hash string) Measured {
	mean := stat.Mean(s.launches[hash], nil)
	if s.campaign.Objective.Minimize() {
		mean = -mean
	}
	value := math.Exp(mean)
	return Measured{Configuration: ConfigurationOf(s.first[hash]), Value: &value, Launches: len(s.launches[hash])}
}

// ranking is Spearman's rank correlation of the paired values: whether what
// was best on one side is best on the other.
func ranking(found []Pair) *float64 {
	if len(found) < 3 {
		return nil
	}
	a, b := make([]float64, len(found)), make([]float64, len(found))
	for i, pair := range found {
		a[i], b[i] = *pair.A.Value, *pair.B.Value
	}
	correlation := stat.Correlation(ranks(a), ranks(b), nil)
	if math.IsNaN(correlation) {
		return nil
	}
	return &correlation
}

func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	out := make([]float64, len(values))
	for rank, i := range order {
		out[i] = float64(rank)
	}
	return out
}

// logValue is the logarithm of a positive objective, turned so that larger is
// better.
func logValue(value float64, minimize bool) float64 {
	if minimize {
		return -math.Log(value)
	}
	return math.Log(value)
}
