package supervise

import (
	"bytes"
	"context"
	"io"
	"sync"
)

// MaxLine is the length in bytes at which a line is cut. The log has the whole
// line.
const MaxLine = 64 << 10

// queueLimit bounds the lines that wait for a reader, in bytes.
const queueLimit = 4 << 20

// Stream says where a line was written to.
type Stream uint8

// The two streams of a process.
const (
	Stdout Stream = 1 + iota
	Stderr
)

// Line is one line of the server's output, without its end. Both a newline and
// a carriage return end a line, so each state of a progress bar is one.
type Line struct {
	Text   string
	Stream Stream
	// Partial marks the start of a line whose end has not been written yet. The
	// whole line follows when it has, so readers of whole lines pass over these.
	Partial bool `json:",omitempty"`
	// Cut marks a line longer than MaxLine.
	Cut bool `json:",omitempty"`
	// Skipped counts the whole lines lost before this one because nobody read
	// them in time. They are in the log.
	Skipped int `json:",omitempty"`
}

// splitter cuts the bytes of one stream into lines.
type splitter struct {
	stream  Stream
	emit    func(Line)
	pending []byte
	shown   int  // how much of pending was handed out as a partial line
	cut     bool // the line was cut; the rest of it is dropped
	afterCR bool // a newline now belongs to the carriage return before it
}

// write takes the next bytes of the stream.
func (s *splitter) write(p []byte) {
	for len(p) > 0 {
		if s.afterCR && p[0] == '\n' {
			p = p[1:]
		}
		s.afterCR = false
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			s.add(p)
			return
		}
		s.add(p[:end])
		s.afterCR = p[end] == '\r'
		p = p[end+1:]
		s.finish()
	}
}

func (s *splitter) add(p []byte) {
	room := MaxLine - len(s.pending)
	if len(p) <= room {
		s.pending = append(s.pending, p...)
		return
	}
	s.pending = append(s.pending, p[:room]...)
	s.cut = true
}

// finish hands out the line that just ended.
func (s *splitter) finish() {
	s.emit(Line{Text: string(s.pending), Stream: s.stream, Cut: s.cut})
	s.pending, s.shown, s.cut = s.pending[:0], 0, false
}

// unfinished says whether a line has begun that nobody has been shown.
func (s *splitter) unfinished() bool { return len(s.pending) > s.shown }

// pause is called when the stream rests: what there is of a line is handed out,
// because a progress bar ends its line only when it draws the next.
func (s *splitter) pause() {
	if s.unfinished() {
		s.emit(Line{Text: string(s.pending), Stream: s.stream, Partial: true, Cut: s.cut})
		s.shown = len(s.pending)
	}
}

// close is called at the end of the stream.
func (s *splitter) close() {
	if len(s.pending) > 0 {
		s.finish()
	}
}

// lineQueue holds lines until they are read. It is bounded in bytes: when it is
// full, the oldest lines give way, because the newest ones explain a death.
type lineQueue struct {
	mu      sync.Mutex
	lines   []Line
	bytes   int
	skipped int
	closed  bool
	wake    chan struct{} // holds a token while there may be something to read
}

func newLineQueue() *lineQueue { return &lineQueue{wake: make(chan struct{}, 1)} }

// cost is what a line counts against the limit; the constant is its overhead.
func (l Line) cost() int { return len(l.Text) + 64 }

// push adds a line and never blocks.
func (q *lineQueue) push(line Line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lines = append(q.lines, line)
	q.bytes += line.cost()
	for q.bytes > queueLimit && len(q.lines) > 1 {
		q.bytes -= q.lines[0].cost()
		q.skipped += q.lines[0].Skipped
		if !q.lines[0].Partial {
			q.skipped++
		}
		q.lines = q.lines[1:]
	}
	q.signal()
}

// close ends the queue; what is in it can still be read.
func (q *lineQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

func (q *lineQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// pop waits for the next line. It returns io.EOF when the queue is closed and
// empty.
func (q *lineQueue) pop(ctx context.Context) (Line, error) {
	for {
		if line, ok, end := q.take(); ok {
			return line, nil
		} else if end {
			return Line{}, io.EOF
		}
		select {
		case <-ctx.Done():
			return Line{}, ctx.Err()
		case <-q.wake:
		}
	}
}

func (q *lineQueue) take() (line Line, ok, end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lines) == 0 {
		if q.closed {
			q.signal() // another reader may wait for the end as well
		}
		return Line{}, false, q.closed
	}
	line = q.lines[0]
	line.Skipped += q.skipped
	q.skipped = 0
	q.lines = q.lines[1:]
	q.bytes -= line.cost()
	q.signal()
	return line, true, false
}
