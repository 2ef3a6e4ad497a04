// Package screen shows the events of a campaign to a person or a program:
// JSON lines, plain lines for a log, or a terminal with a live status line.
package screen

import (
	"io"
	"sync"

	"nocturne/store"
	"nocturne/tuner/output"
)

// View is told every event of a campaign. Close returns once everything is
// written.
type View interface {
	Event(campaign store.Campaign, event store.Event)
	Close()
}

// Lines writes each event as one line of JSON.
type Lines struct {
	mutex sync.Mutex
	out   io.Writer
}

// NewLines returns a view for programs.
func NewLines(out io.Writer) *Lines { return &Lines{out: out} }

// Event writes one line.
func (l *Lines) Event(campaign store.Campaign, event store.Event) {
	line, err := output.Line(campaign.Name, campaign.Run, event)
	if err != nil {
		return // an event without JSON form cannot have been stored
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	// A reader that went away must not end the campaign.
	_, _ = l.out.Write(append(line, '\n'))
}

// Close has nothing to wait for.
func (l *Lines) Close() {}
