package spec

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"time"
)

// usualTrials is about what one night holds when a launch takes a quarter of an
// hour.
const usualTrials = 40

func (r *resolver) budget(options Options) Budget {
	file := r.file.Budget
	out := Budget{
		Trials: r.count("budget.trials", file.Trials, usualTrials, 1, 100_000),
		Nights: r.count("budget.nights", file.Nights, 1, 1, 365),
		Until:  options.Until,
	}
	if file.Time.given() {
		if out.Time = file.Time.Duration; out.Time < leastTimeout {
			r.fault(file.Time.Position, "budget.time: %s is less than 1s; is the unit right?", file.Time.Duration)
		}
	}
	if file.Window != nil {
		window, err := parseWindow(file.Window.Text)
		if err != nil {
			r.fault(file.Window.Position, "budget.window: %v", err)
		}
		out.Window = window
	} else if file.Nights != nil && out.Nights > 1 && !file.Where.has("window") {
		r.fault(file.Nights.Position, "budget.nights: several nights need a window, such as window: \"22:00-07:00 Europe/Berlin\"")
	}
	if file.Until != nil {
		r.until(&out, file)
	}
	return out
}

func (r *resolver) until(out *Budget, file fileBudget) {
	if file.Nights != nil {
		r.fault(file.Until.Position, "budget: until and nights both say when the campaign ends; keep one of them")
	}
	until, err := time.Parse(time.RFC3339, file.Until.Text)
	switch {
	case err != nil:
		r.fault(file.Until.Position, "budget.until: %q: want an instant with its zone, such as 2026-12-02T07:00:00+01:00", file.Until.Text)
	case out.Until == nil:
		out.Until = &until
	}
}

func (r *resolver) confirm() Confirm {
	file := r.file.Confirm
	if file == nil || file.Auto || !file.Confirmation.Where.read() {
		return Confirm{Auto: true}
	}
	return Confirm{
		Top:        r.count("confirm.top", file.Confirmation.Top, 1, 1, 20),
		Relaunches: r.count("confirm.relaunches", file.Confirmation.Relaunches, 3, 2, 100),
	}
}

// largestSeed is what a JSON number holds exactly.
const largestSeed = 1<<53 - 1

// seed is the file's, or drawn.
func (r *resolver) seed() uint64 {
	written := r.file.Seed
	if written == nil {
		var raw [8]byte
		_, _ = rand.Read(raw[:]) // it never fails: crypto/rand ends the program instead
		return binary.LittleEndian.Uint64(raw[:]) & largestSeed
	}
	value, err := strconv.ParseUint(written.Text, 10, 64)
	if err != nil || written.quoted() || written.leadingZero() || value > largestSeed {
		r.fault(written.Position, "seed: %q: want a whole number from 0 to %d", written.Text, uint64(largestSeed))
	}
	return value
}
