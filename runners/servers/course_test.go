package servers_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"nocturne/runners"
	"nocturne/runners/servers"
)

func mark(phase string, percent float64, after time.Duration) servers.Mark {
	return servers.Mark{Phase: runners.Phase{Name: phase, Percent: percent}, After: after}
}

// withDraft is a load of a target and of its draft model.
var withDraft = servers.Course{
	Marks: []servers.Mark{
		mark("starting", -1, 5*time.Second), mark("weights", 0, 10*time.Second), mark("weights", 50, 310*time.Second),
		mark("weights", 100, 610*time.Second), mark("graph_capture", 0, 620*time.Second), mark("graph_capture", 100, 680*time.Second),
		mark("weights", 0, 690*time.Second), mark("weights", 100, 700*time.Second), mark("graph_capture", 0, 705*time.Second),
		mark("serving", 100, 720*time.Second),
	},
	Length: 722 * time.Second,
}

func TestRemaining(t *testing.T) {
	warm := servers.Course{Marks: []servers.Mark{mark("weights", 0, 10*time.Second), mark("weights", 100, 40*time.Second), mark("serving", 100, 90*time.Second)}, Length: 90 * time.Second}
	tests := []struct {
		name    string
		earlier []servers.Course
		marks   []servers.Mark
		elapsed time.Duration
		want    time.Duration
		known   bool
	}{
		{"nothing seen yet", []servers.Course{withDraft}, nil, time.Second, 0, false},
		{"no earlier load", nil, withDraft.Marks[:3], 310 * time.Second, 0, false},
		{"a phase that none had", []servers.Course{warm}, []servers.Mark{mark("compile", 0, time.Second)}, time.Second, 0, false},
		{"like before", []servers.Course{withDraft}, withDraft.Marks[:3], 310 * time.Second, 412 * time.Second, true},
		{"between marks", []servers.Course{withDraft}, []servers.Mark{mark("weights", 0, 10*time.Second), mark("weights", 25, 160*time.Second)}, 160 * time.Second, 562 * time.Second, true},
		{"time since the last line", []servers.Course{withDraft}, withDraft.Marks[:3], 330 * time.Second, 392 * time.Second, true},
		{"the draft's weights", []servers.Course{withDraft}, withDraft.Marks[:7], 690 * time.Second, 32 * time.Second, true},
		// Twice as slow so far: 620 s until the next phase, then the 102 s after it.
		{"a cold disk", []servers.Course{withDraft}, []servers.Mark{mark("weights", 0, 10*time.Second), mark("weights", 50, 610*time.Second)}, 610 * time.Second, 722 * time.Second, true},
		{"the middle of two", []servers.Course{withDraft, warm}, []servers.Mark{mark("weights", 0, 10*time.Second)}, 10 * time.Second, 396 * time.Second, true},
		{"later than ever", []servers.Course{warm}, warm.Marks, time.Hour, 0, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			left, known := servers.Remaining(test.earlier, test.marks, test.elapsed)
			if known != test.known || left != test.want {
				t.Errorf("%s, %v; expected %s, %v", left, known, test.want, test.known)
			}
		})
	}
}

// A load that goes as the one before ends when the one before did, at whatever
// mark one asks.
func TestRemainingOfARepetition(t *testing.T) {
	names := []string{"starting", "weights", "kv_cache", "graph_capture"}
	rapid.Check(t, func(t *rapid.T) {
		var course servers.Course
		last := ""
		for range rapid.IntRange(1, 6).Draw(t, "phases") {
			name := rapid.SampledFrom(names).Filter(func(name string) bool { return name != last }).Draw(t, "phase")
			last = name
			percent := -1.0
			for range rapid.IntRange(1, 4).Draw(t, "marks") {
				course.Length += time.Duration(rapid.IntRange(1, 60).Draw(t, "seconds")) * time.Second
				course.Marks = append(course.Marks, mark(name, percent, course.Length))
				percent += float64(rapid.IntRange(1, 30).Draw(t, "more"))
			}
		}
		course.Length += time.Second
		for i := range course.Marks {
			elapsed := course.Marks[i].After
			if left, known := servers.Remaining([]servers.Course{course}, course.Marks[:i+1], elapsed); !known || elapsed+left != course.Length {
				t.Fatalf("after mark %d of %+v: %s left, %v", i, course, left, known)
			}
		}
	})
}
