package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nocturne/store"
	"nocturne/tuner"
	"nocturne/tuner/output"
)

// F32: a campaign whose tuner is killed at any moments, again and again, ends as an
// undisturbed one does: no finished trial is lost or repeated, and no process
// is left.
func TestF32_KillAtAnyMoment(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		file := w.bowl()
		undisturbed := newWorld(t, "")
		undisturbed.run("tune", undisturbed.bowl())
		want := outcomeOf(undisturbed, "bowl")
		kills := killer{world: w, file: file, campaign: "bowl", events: 20, most: 20}.killUntilDone(1)
		t.Logf("%d kills", kills)
		if kills < 5 {
			t.Errorf("the tuner was killed %d times only: nothing is proved", kills)
		}
		got := outcomeOf(w, "bowl")
		if difference := cmp.Diff(want, got); difference != "" {
			t.Errorf("the outcome differs from that of an undisturbed campaign (-want +got):\n%s", difference)
		}
	})
}

// F18: the same with servers, which must not outlive their tuner. Their speed is that
// of a machine that may have better things to do, so the claim may be a tie.
func TestF18_KillLeavesNoServer(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		kills := killer{world: w, file: w.simulated(), campaign: "simulated", events: 80, most: 8}.killUntilDone(2)
		t.Logf("%d kills", kills)
		if kills < 3 {
			t.Errorf("the tuner was killed %d times only: nothing is proved", kills)
		}
		got := outcomeOf(w, "simulated")
		if len(got.Trials) != 8 || (got.Claim == "improved" && got.Best["settings"] != "fast") {
			t.Errorf("claim %s for %v after %d trials, want the fast settings after 8", got.Claim, got.Best, len(got.Trials))
		}
		for _, trial := range got.Trials {
			if trial.State != store.TrialComplete {
				t.Errorf("trial %d is %s: a kill was blamed on its configuration", trial.Number, trial.State)
			}
		}
	})
}

// outcome is what must not depend on kills.
type outcome struct {
	Claim  string
	Best   map[string]string
	Trials []finishedTrial
}

type finishedTrial struct {
	Number int
	Role   store.Role
	State  store.TrialState
	Values string
	Value  float64
}

// outcomeOf reads the end of a campaign and checks its trial numbers.
func outcomeOf(w *world, campaign string) outcome {
	w.t.Helper()
	show := answer[output.Show](w, "show", campaign)
	if show.Verdict == nil || show.Best == nil {
		w.t.Fatalf("campaign %s has no verdict: %s", campaign, show.State)
	}
	found := outcome{Claim: show.Verdict.Claim, Best: map[string]string{}}
	for knob, value := range show.Best.Configuration.Values {
		found.Best[knob] = value.String()
	}
	for i, trial := range answer[output.Trials](w, "trials", campaign).Trials {
		if trial.Trial != i+1 {
			w.t.Errorf("trial %d stands in place %d", trial.Trial, i+1)
		}
		one := finishedTrial{Number: trial.Trial, Role: trial.Role, State: trial.State, Values: fmt.Sprint(trial.Configuration.Values)}
		if trial.Value != nil {
			one.Value = *trial.Value
		}
		found.Trials = append(found.Trials, one)
	}
	return found
}

// killer runs a campaign and kills its tuner.
type killer struct {
	world    *world
	file     string
	campaign string
	events   int // that a tuner tells at most before it is killed
	most     int // kills, then it may end
}

// killUntilDone returns the number of kills.
func (k killer) killUntilDone(seed uint64) int {
	w := k.world
	w.t.Helper()
	random := rand.New(rand.NewPCG(seed, seed))
	finished := map[int]string{}
	for kills := 0; ; kills++ {
		args := []string{"tune", k.file}
		if kills%2 == 1 && len(finished) > 0 {
			args = []string{"resume", k.campaign}
		}
		hurt := k.hurtTrial()
		p := w.start(args...)
		if kills < k.most {
			if hurt > 0 {
				p.await(func(e event) bool { return e.Event == output.EventTrialFinished && e.number() == hurt })
			}
			k.live(p, random)
			p.signal(syscall.SIGKILL)
		}
		status := p.end()
		w.awaitSilence()
		k.unchanged(finished)
		switch status {
		case killed:
		case tuner.ExitImproved, tuner.ExitNoGain:
			w.lastWord(k.campaign, store.CampaignComplete)
			return kills
		case exitUsage: // killed between its last words and its end
			if state := answer[output.Show](w, "show", k.campaign).State; state == store.CampaignComplete {
				w.lastWord(k.campaign, store.CampaignComplete)
				return kills
			}
			fallthrough
		default:
			w.t.Fatalf("the tuner ended with %d after %d kills: %s", status, kills, p.stderr.String())
		}
	}
}

// lastWord checks that the last event on record says how the campaign ended, and
// that no other says so.
func (w *world) lastWord(name string, state store.CampaignState) {
	w.t.Helper()
	campaign, err := w.store().Campaign(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	events, err := w.store().Events(w.t.Context(), campaign.ID, 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	var said []int64
	for _, event := range events {
		var finished output.CampaignFinished
		if event.Name == output.EventCampaignFinished && json.Unmarshal(event.Payload, &finished) == nil && finished.State == state {
			said = append(said, event.Seq)
		}
	}
	if len(said) != 1 || said[0] != int64(len(events)) {
		w.t.Errorf("the events %v of %d say that the campaign is %s, want the last one only", said, len(events), state)
	}
}

// A tuner that was killed between the stored end and its last event: whoever looks
// at the campaign next tells it, once.
func TestKillBeforeTheLastEvent(t *testing.T) {
	t.Parallel()
	for name, url := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, cut := newWorld(t, url(t)), newWorld(t, url(t))
			file := whole.bowl()
			if _, stderr, status := whole.run("tune", file); status != 0 {
				t.Fatalf("the campaign ended with %d: %s", status, stderr)
			}
			archive, err := whole.store().Export(t.Context(), answer[output.Show](whole, "show", "bowl").CampaignID)
			if err != nil {
				t.Fatal(err)
			}
			archive.Events = archive.Events[:len(archive.Events)-1]
			if _, err := cut.store().Import(t.Context(), archive); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"tune", file}, {"resume", "bowl"}} {
				if _, stderr, status := cut.run(args...); status != exitUsage {
					t.Errorf("nocturne %v of a campaign that has ended: exit status %d, want 2: %s", args, status, stderr)
				}
				cut.lastWord("bowl", store.CampaignComplete)
			}
		})
	}
}

// live lets a tuner live for a random time: up to one of its events, so that the
// speed of the machine plays no part, and a moment longer; or only for a moment,
// so that it dies at its start.
func (k killer) live(p *process, random *rand.Rand) {
	moment := time.Duration(random.Int64N(int64(20 * time.Millisecond)))
	if left := random.IntN(k.events); left > k.events/5 {
		p.await(func(event) bool { left--; return left <= 0 })
	} else {
		moment *= 5
	}
	select {
	case <-p.done:
	case <-time.After(moment):
	}
}

// unchanged checks that trials that were finished before are as they were, and
// adds those that are new.
func (k killer) unchanged(finished map[int]string) {
	w := k.world
	w.t.Helper()
	campaign, found := k.record()
	if !found {
		return // killed before there was a campaign
	}
	trials, err := w.store().Trials(w.t.Context(), campaign.ID, store.TrialFilter{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, trial := range trials {
		text, err := output.WriteJSON(trial)
		if err != nil {
			w.t.Fatal(err)
		}
		before, known := finished[trial.Number]
		if difference := cmp.Diff(before, string(text)); known && difference != "" {
			w.t.Errorf("trial %d was finished and has changed (-before +after):\n%s", trial.Number, difference)
		}
		if trial.State.Ended() {
			finished[trial.Number] = string(text)
		}
	}
	if len(trials) < len(finished) {
		w.t.Errorf("%d trials are left of %d finished ones", len(trials), len(finished))
	}
}

// record is the campaign, once there is one.
func (k killer) record() (store.Campaign, bool) {
	k.world.t.Helper()
	campaign, err := k.world.store().Campaign(k.world.t.Context(), k.campaign)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		k.world.t.Fatal(err)
	}
	return campaign, err == nil
}

// hurtTrial is a trial that has been lost so often that the next time it would
// be given up, as it must be; 0 for none.
func (k killer) hurtTrial() int {
	k.world.t.Helper()
	s := k.world.store()
	campaign, found := k.record()
	if !found {
		return 0
	}
	attempts, err := s.Attempts(k.world.t.Context(), campaign.ID)
	if err != nil {
		k.world.t.Fatal(err)
	}
	trials, err := s.Trials(k.world.t.Context(), campaign.ID, store.TrialFilter{Summary: true})
	if err != nil {
		k.world.t.Fatal(err)
	}
	for _, trial := range trials {
		lost := 0
		for _, attempt := range attempts {
			if attempt.TrialID == trial.ID && attempt.State != store.AttemptComplete {
				lost++
			}
		}
		if lost >= 2 && !trial.State.Ended() {
			return trial.Number
		}
	}
	return 0
}
