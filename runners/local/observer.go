package local

import (
	"sync"

	"nocturne/runners"
)

// observer passes on what happens to the caller's observer, one call at a
// time: phases come from the log while stages come from the trial.
type observer struct {
	mu       sync.Mutex
	observed runners.Observer
}

func (o *observer) launched(launch runners.Launch) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.observed.Launched(launch)
}

func (o *observer) stage(stage runners.Stage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.observed.Stage(stage)
}

func (o *observer) phase(phase runners.Phase) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.observed.Phase(phase)
}

func (o *observer) round(round runners.Round) runners.RoundDecision {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.observed.Round(round)
}
