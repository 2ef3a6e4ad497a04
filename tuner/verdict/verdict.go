// Package verdict turns fresh launches into a claim.
//
// The unit of evidence is the launch, not the request and not the round: two
// launches of one configuration differ by more than two rounds of one launch.
// All arithmetic is on logarithms of the objective, turned so that larger is
// better, because effects and noise of a server are ratios.
//
// The launches of an Evidence come in blocks: each block launches every arm
// once, in rotated order. With three arms or more the estimate of the launch
// noise is the residual mean square of the two-way layout arms + blocks
// (Montgomery, Design and Analysis of Experiments, chapter on randomized
// complete block designs), so a drift from block to block is no noise. With two arms
// that residual has too few degrees of freedom; the noise is then pooled within
// arms, which counts a drift as noise and so errs on the careful side.
// Intervals are Student's t at that estimate's degrees of freedom, which holds
// at two or three launches, where rank tests cannot reach significance.
package verdict

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// Confidence of all intervals.
const Confidence = 0.95

// power is the probability with which the minimal detectable effect is
// detected.
const power = 0.8

// Claim is what a campaign may say at its end.
type Claim string

// Claims.
const (
	Improved    Claim = "improved"    // the interval lies above 1
	NoEffect    Claim = "no_effect"   // it lies within the margin of 1
	Tie         Claim = "tie"         // undecided
	Unconfirmed Claim = "unconfirmed" // no fresh relaunches
	None        Claim = "none"        // no valid reference or no valid candidate
)

// Launch is one fresh launch of an arm.
type Launch struct {
	Arm   string
	Block int
	// Value is the objective, positive and finite.
	Value float64
}

// Evidence is everything that a claim rests on.
type Evidence struct {
	Launches []Launch
	// Candidates are the arms that may win, in order of preference among equals
	// (nearest the default first).
	Candidates []string
	// References are the arms to compare with; the first one decides the claim,
	// also when it has no launches: then nothing can be claimed.
	References []string
	Minimize   bool
	// MinimalEffect is the relative difference that does not matter, 0.01 for 1 %.
	MinimalEffect float64
}

// Arm summarizes the launches of one arm.
type Arm struct {
	Name     string
	Launches int
	// Value is the geometric mean over launches, in the objective's unit.
	Value    float64
	Interval *[2]float64
}

// Comparison is a candidate against a reference.
type Comparison struct {
	Against  string
	Speedup  float64 // above 1 is better, also for a minimized objective
	Interval *[2]float64
	Launches int
}

// Conclusion is the outcome for an Evidence.
type Conclusion struct {
	Claim       Claim
	Reason      string
	Winner      string
	Against     string
	Comparisons []Comparison // one for each reference with launches
	Arms        map[string]Arm
	// TiedWith names the candidates that the evidence cannot tell from the winner.
	TiedWith []string
	// MinimalDetectable is the relative effect that this many launches at this
	// noise detect with probability 0.8; nil when the noise is not known.
	MinimalDetectable *float64
	// LaunchNoise is the relative standard deviation between launches; nil when
	// not known. Degrees are its degrees of freedom.
	LaunchNoise *float64
	Degrees     int
}

// noise is an estimate of the standard deviation of one log launch.
type noise struct {
	sigma   float64
	degrees int
	// choices is the number of candidates that the winner is the best of. The
	// best of several means overstates; intervals are widened to hold for all of
	// them at once (Bonferroni).
	choices int
}

// Decide draws the conclusion.
func Decide(evidence Evidence) Conclusion {
	samples := newSamples(evidence)
	estimate := samples.noise()
	estimate.choices = samples.present(evidence.Candidates)
	conclusion := Conclusion{Arms: samples.summaries()}
	if estimate.degrees > 0 {
		sigma := estimate.sigma
		conclusion.LaunchNoise, conclusion.Degrees = &sigma, estimate.degrees
	}
	if len(evidence.References) == 0 {
		conclusion.Claim, conclusion.Reason = None, "there is no reference to compare with"
		return conclusion
	}
	conclusion.Against = evidence.References[0]
	winner, tied, ok := samples.winner(evidence.Candidates, evidence.MinimalEffect, estimate)
	if !ok {
		conclusion.Claim, conclusion.Reason = Unconfirmed, "no candidate has a valid fresh launch"
		return conclusion
	}
	conclusion.Winner, conclusion.TiedWith = winner, tied
	for _, name := range evidence.References {
		if comparison, ok := samples.compare(winner, name, estimate); ok {
			conclusion.Comparisons = append(conclusion.Comparisons, comparison)
		}
	}
	if fewest := min(len(samples.values[winner]), len(samples.values[conclusion.Against])); fewest < leastLaunches {
		conclusion.Claim = Unconfirmed
		conclusion.Reason = fmt.Sprintf("%s has %d valid fresh launches and %s has %d; a claim needs %d of each",
			winner, len(samples.values[winner]), conclusion.Against, len(samples.values[conclusion.Against]), leastLaunches)
		return conclusion
	}
	detectable := samples.minimalDetectable(winner, conclusion.Against, estimate)
	conclusion.MinimalDetectable = &detectable
	conclusion.Claim, conclusion.Reason = claim(conclusion.Comparisons[0], evidence.MinimalEffect)
	return conclusion
}

// leastLaunches of an arm that a claim may rest on: one launch says nothing of
// how far the next one would be.
const leastLaunches = 2

func claim(c Comparison, margin float64) (Claim, string) {
	percent := func(ratio float64) string { return fmt.Sprintf("%+.1f %%", (ratio-1)*100) }
	lo, hi := c.Interval[0], c.Interval[1]
	span := fmt.Sprintf("%s over %s (95 %% interval %s to %s, %d launches)", percent(c.Speedup), c.Against, percent(lo), percent(hi), c.Launches)
	switch {
	case lo >= 1-margin && hi <= 1+margin:
		return NoEffect, fmt.Sprintf("the difference is within %.1f %%: %s", margin*100, span)
	case lo > 1:
		return Improved, span
	case hi < 1:
		return None, "no candidate held up in fresh launches: " + span
	default:
		return Tie, "undecided: " + span
	}
}

// samples holds log values by arm, turned so that larger is better.
type samples struct {
	values map[string][]Launch // Value replaced by its turned logarithm
	// order of the arms' first launches. Sums go through it, so that the same
	// evidence gives the same last digit.
	order    []string
	minimize bool
}

func newSamples(evidence Evidence) samples {
	s := samples{values: map[string][]Launch{}, minimize: evidence.Minimize}
	for _, launch := range evidence.Launches {
		if !(launch.Value > 0) || math.IsInf(launch.Value, 0) {
			continue // not a measurement of a positive quantity
		}
		launch.Value = math.Log(launch.Value)
		if evidence.Minimize {
			launch.Value = -launch.Value
		}
		if len(s.values[launch.Arm]) == 0 {
			s.order = append(s.order, launch.Arm)
		}
		s.values[launch.Arm] = append(s.values[launch.Arm], launch)
	}
	return s
}

func (s samples) mean(arm string) float64 {
	sum := 0.0
	for _, launch := range s.values[arm] {
		sum += launch.Value
	}
	return sum / float64(len(s.values[arm]))
}

// noise estimates the launch noise as the package comment says.
func (s samples) noise() noise {
	if blocks := s.completeBlocks(); len(s.values) >= 3 && blocks >= 2 {
		return s.blockedNoise(blocks)
	}
	return s.pooledNoise()
}

// pooledNoise is the spread of launches within arms, any drift included: what
// the next launch of an arm would differ by.
func (s samples) pooledNoise() noise {
	sum, degrees := 0.0, 0
	for _, arm := range s.order {
		mean := s.mean(arm)
		for _, launch := range s.values[arm] {
			sum += (launch.Value - mean) * (launch.Value - mean)
		}
		degrees += len(s.values[arm]) - 1
	}
	if degrees == 0 {
		return noise{}
	}
	return noise{sigma: math.Sqrt(sum / float64(degrees)), degrees: degrees}
}

// completeBlocks is the number of blocks if every block holds every arm
// exactly once, else 0.
func (s samples) completeBlocks() int {
	blocks := map[int]int{}
	for _, launches := range s.values {
		seen := map[int]bool{}
		for _, launch := range launches {
			if seen[launch.Block] {
				return 0
			}
			seen[launch.Block] = true
			blocks[launch.Block]++
		}
	}
	for _, count := range blocks {
		if count != len(s.values) {
			return 0
		}
	}
	return len(blocks)
}

func (s samples) blockedNoise(blocks int) noise {
	arms := len(s.values)
	blockMean, grand := map[int]float64{}, 0.0
	for _, arm := range s.order {
		for _, launch := range s.values[arm] {
			blockMean[launch.Block] += launch.Value / float64(arms)
			grand += launch.Value / float64(arms*blocks)
		}
	}
	sum := 0.0
	for _, arm := range s.order {
		mean := s.mean(arm)
		for _, launch := range s.values[arm] {
			residual := launch.Value - mean - blockMean[launch.Block] + grand
			sum += residual * residual
		}
	}
	degrees := (arms - 1) * (blocks - 1)
	return noise{sigma: math.Sqrt(sum / float64(degrees)), degrees: degrees}
}

// quantile is Student's t for a two-sided interval.
func (n noise) quantile() float64 {
	return n.studentQuantile(1 - (1-Confidence)/2/float64(max(n.choices, 1)))
}

func (n noise) studentQuantile(p float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n.degrees)}.Quantile(p)
}

// present counts the arms that have launches.
func (s samples) present(arms []string) int {
	count := 0
	for _, name := range arms {
		if len(s.values[name]) > 0 {
			count++
		}
	}
	return count
}

// summaries of the arms. Their intervals are for the mean of an arm by itself,
// not for a difference within blocks, so the spread of the blocks is in them.
func (s samples) summaries() map[string]Arm {
	n := s.pooledNoise()
	arms := map[string]Arm{}
	for name, launches := range s.values {
		mean := s.mean(name)
		arm := Arm{Name: name, Launches: len(launches), Value: s.back(mean)}
		if n.degrees > 0 {
			half := n.quantile() * n.sigma / math.Sqrt(float64(len(launches)))
			interval := [2]float64{s.back(mean - half), s.back(mean + half)}
			sort.Float64s(interval[:])
			arm.Interval = &interval
		}
		arms[name] = arm
	}
	return arms
}

// back returns a turned logarithm to the objective's unit.
func (s samples) back(turned float64) float64 {
	if s.minimize {
		turned = -turned
	}
	return math.Exp(turned)
}

// winner is the candidate with the best mean, or an earlier one in the order
// of preference that lies within the margin of it and that the evidence cannot
// tell from it. A candidate whose mean is further away does not win by being
// simple: few launches tie with almost anything.
func (s samples) winner(candidates []string, margin float64, n noise) (winner string, tied []string, ok bool) {
	best := ""
	for _, name := range candidates {
		if len(s.values[name]) > 0 && (best == "" || s.mean(name) > s.mean(best)) {
			best = name
		}
	}
	if best == "" {
		return "", nil, false
	}
	winner = best
	for _, name := range slices.Backward(candidates) {
		if len(s.values[name]) == 0 || n.degrees == 0 {
			continue
		}
		behind := s.mean(best) - s.mean(name)
		if behind <= s.halfWidth(best, name, n) && behind <= math.Log1p(margin) {
			winner = name
		}
	}
	for _, name := range candidates {
		if name != winner && len(s.values[name]) > 0 && n.degrees > 0 &&
			math.Abs(s.mean(winner)-s.mean(name)) <= s.halfWidth(winner, name, n) {
			tied = append(tied, name)
		}
	}
	return winner, tied, true
}

// halfWidth of the interval of the difference of two arms.
func (s samples) halfWidth(a, b string, n noise) float64 {
	return n.quantile() * s.standardError(a, b, n)
}

func (s samples) standardError(a, b string, n noise) float64 {
	return n.sigma * math.Sqrt(1/float64(len(s.values[a]))+1/float64(len(s.values[b])))
}

func (s samples) compare(winner, reference string, n noise) (Comparison, bool) {
	if len(s.values[reference]) == 0 {
		return Comparison{}, false
	}
	difference := s.mean(winner) - s.mean(reference)
	comparison := Comparison{
		Against:  reference,
		Speedup:  math.Exp(difference),
		Launches: len(s.values[winner]) + len(s.values[reference]),
	}
	if n.degrees > 0 {
		half := s.halfWidth(winner, reference, n)
		comparison.Interval = &[2]float64{math.Exp(difference - half), math.Exp(difference + half)}
	}
	return comparison, true
}

// minimalDetectable is (t(1-a/2) + t(power)) times the standard error of the
// difference, as a ratio (Cohen, Statistical Power Analysis, two-sample case).
func (s samples) minimalDetectable(a, b string, n noise) float64 {
	return math.Expm1((n.quantile() + n.studentQuantile(power)) * s.standardError(a, b, n))
}
