package tuner

import (
	"context"
	"encoding/json"
	"time"

	"nocturne/runners"
	"nocturne/runners/servers"
	"nocturne/store"
	"nocturne/tuner/output"
)

const (
	// loadsKept is how many earlier loads an estimate rests on, the newest.
	loadsKept = 8
	// loadsFrom is how many earlier campaigns they are looked for in.
	loadsFrom = 3
)

// loadWatch follows a load through its stages and phases. The zero value waits for
// a launch.
type loadWatch struct {
	begun time.Time
	marks []servers.Mark
}

// stage notes a new stage, and returns the course of a load that has just ended
// well.
func (l *loadWatch) stage(stage runners.Stage, at time.Time) (servers.Course, bool) {
	switch stage {
	case runners.Launching:
		*l = loadWatch{begun: at}
	case runners.Loading:
	case runners.Verifying:
		course := servers.Course{Marks: l.marks, Length: at.Sub(l.begun)}
		told := !l.begun.IsZero() && len(l.marks) > 0
		*l = loadWatch{}
		return course, told
	default:
		*l = loadWatch{}
	}
	return servers.Course{}, false
}

func (l *loadWatch) phase(phase runners.Phase, at time.Time) {
	if !l.begun.IsZero() {
		l.marks = append(l.marks, servers.Mark{Phase: phase, After: at.Sub(l.begun)})
	}
}

// coursesIn reads the loads of a campaign from its events.
func coursesIn(events []store.Event) []servers.Course {
	var courses []servers.Course
	var load loadWatch
	for _, event := range events {
		if event.Name == output.EventTrialStarted {
			load = loadWatch{}
		}
		var entered output.StageEntered
		if event.Name != output.EventStage || json.Unmarshal(event.Payload, &entered) != nil {
			continue
		}
		if entered.Phase != "" {
			phase := runners.Phase{Name: entered.Phase, Percent: -1}
			if entered.Percent != nil {
				phase.Percent = *entered.Percent
			}
			load.phase(phase, event.Time)
			continue
		}
		if course, ended := load.stage(entered.Stage, event.Time); ended {
			courses = append(courses, course)
		}
	}
	return courses
}

// loads are the earlier loads of the same model on the same hardware: those of this
// run, and while it has too few, those of the latest campaigns before it. They are
// read once; the run adds its own.
func (r *run) loads(ctx context.Context) []servers.Course {
	if r.coursesRead {
		return r.courses
	}
	r.coursesRead = true
	campaigns, err := r.tuner.Store.Campaigns(ctx, store.CampaignFilter{HardwareKey: r.record.HardwareKey, Limit: consideredForLoads})
	if err != nil {
		return r.courses // an estimate is not worth a word
	}
	looked := 0
	for _, campaign := range campaigns {
		if campaign.ModelKey != r.record.ModelKey || looked == loadsFrom || len(r.courses) >= loadsKept {
			continue
		}
		looked++
		events, err := r.tuner.Store.Events(ctx, campaign.ID, 0, 0)
		if err != nil {
			return r.courses
		}
		// Older ones go before those that are known.
		r.courses = append(newest(coursesIn(events)), r.courses...)
	}
	r.courses = newest(r.courses)
	return r.courses
}

// consideredForLoads is how many of the hardware's campaigns are looked through for
// those of the model.
const consideredForLoads = 20

func newest(courses []servers.Course) []servers.Course {
	return courses[max(0, len(courses)-loadsKept):]
}

// remaining is how long the running load will still take, by earlier ones; null
// when none tells.
func (r *run) remaining(ctx context.Context, load loadWatch) *float64 {
	if load.begun.IsZero() {
		return nil
	}
	left, known := servers.Remaining(r.loads(ctx), load.marks, time.Since(load.begun))
	if !known {
		return nil
	}
	return seconds(left)
}
