package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// Limits of the event reader. SGLang's cumulative text and log-probabilities
// make lines of many kilobytes; beyond maxEventBytes the stream is no token
// stream.
const (
	firstBufferBytes = 8 << 10
	maxEventBytes    = 16 << 20
	maxStrayBytes    = 512
	maxEmptyReads    = 100
)

var errEventTooLong = fmt.Errorf("an event is longer than %d MiB", maxEventBytes>>20)

// event is one server-sent event with data.
type event struct {
	// data is valid until the next call of next.
	data []byte
	// at is when the read returned that delivered the end of the data.
	at time.Time
	// failed is set when the stream marks the event as an error outside its
	// data: "event: error", or the field "error:" of older llama.cpp servers.
	failed bool
}

// eventReader reads server-sent events and stamps them. It accepts what
// inference servers send: "data:" with and without a space, comments, spaces
// after the data, data over several lines, LF and CRLF, several events for each
// read and several reads for each event, and a last event without a blank line.
//
// It follows section 9.2.6 of the HTML standard, but for a lone CR, which no
// server uses as a line end.
type eventReader struct {
	source io.Reader
	buffer []byte
	// buffer[start:end] is unread; the first searched bytes of it hold no LF.
	start, end, searched int
	at                   time.Time // when the last read returned
	failure              error     // sticky error of source
	bom                  bool      // the start of the stream was looked at

	// stray is the start of what was no event, to explain an answer that is no
	// event stream.
	stray []byte

	joined []byte // data over several lines
}

// reset prepares the reader for another stream and keeps its buffers.
func (r *eventReader) reset(source io.Reader) {
	buffer := r.buffer
	if buffer == nil {
		buffer = make([]byte, firstBufferBytes)
	}
	*r = eventReader{source: source, buffer: buffer, stray: r.stray[:0], joined: r.joined[:0]}
}

// next returns the next event that has data; at the end of the stream, io.EOF.
func (r *eventReader) next() (event, error) {
	var e event
	found := false
	for {
		line, err := r.line()
		if err != nil {
			if found && errors.Is(err, io.EOF) {
				return e, nil
			}
			return event{}, err
		}
		if len(line) == 0 {
			if found {
				return e, nil
			}
			e.failed = false
			continue
		}
		name, value := splitField(line)
		switch name {
		case "data", "error":
			e.failed = e.failed || name == "error"
			if !found && r.blankFollows() {
				// The usual event, one line and whole in the buffer: no copy.
				return event{data: value, at: r.at, failed: e.failed}, nil
			}
			if err := r.join(value, found); err != nil {
				return event{}, err
			}
			found = true
			e.data, e.at = r.joined, r.at
		case "event":
			e.failed = string(value) == "error"
		case "", "id", "retry":
		default:
			if room := maxStrayBytes - len(r.stray); room > 0 {
				r.stray = append(r.stray, line[:min(room, len(line))]...)
			}
		}
	}
}

// splitField splits a line into field and value. A comment has no name; a line
// without a colon is all name. Spaces after the value are no part of it: one
// server pads its events, and no JSON ends in a space that matters.
func splitField(line []byte) (name string, value []byte) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return fieldName(line), nil
	}
	value = bytes.TrimRight(line[colon+1:], " \t")
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return fieldName(line[:colon]), value
}

// fieldName returns a constant for each known name, so that the usual line
// costs no allocation.
func fieldName(name []byte) string {
	switch string(name) {
	case "":
		return ""
	case "data":
		return "data"
	case "event":
		return "event"
	case "error":
		return "error"
	case "id":
		return "id"
	case "retry":
		return "retry"
	}
	return "?"
}

// blankFollows consumes the blank line that ends an event when it is already
// in the buffer.
func (r *eventReader) blankFollows() bool {
	rest := r.buffer[r.start:r.end]
	switch {
	case len(rest) >= 1 && rest[0] == '\n':
		r.start++
	case len(rest) >= 2 && rest[0] == '\r' && rest[1] == '\n':
		r.start += 2
	default:
		return false
	}
	r.searched = 0
	return true
}

func (r *eventReader) join(value []byte, more bool) error {
	if !more {
		r.joined = append(r.joined[:0], value...)
		return nil
	}
	if len(r.joined)+len(value) >= maxEventBytes {
		return errEventTooLong
	}
	r.joined = append(append(r.joined, '\n'), value...)
	return nil
}

// line returns the next line without its end. The last line of the stream may
// lack one.
func (r *eventReader) line() ([]byte, error) {
	for {
		unread := r.buffer[r.start:r.end]
		if i := bytes.IndexByte(unread[r.searched:], '\n'); i >= 0 {
			line := unread[:r.searched+i]
			r.start += len(line) + 1
			r.searched = 0
			return r.clean(line), nil
		}
		r.searched = len(unread)
		if r.failure != nil {
			if len(unread) == 0 || !errors.Is(r.failure, io.EOF) {
				return nil, r.failure
			}
			r.start, r.searched = r.end, 0
			return r.clean(unread), nil
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// clean strips the CR of a CRLF, and the byte order mark at the very start.
func (r *eventReader) clean(line []byte) []byte {
	if !r.bom {
		r.bom = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}

// fill reads once more, and stamps the bytes as soon as they are there.
func (r *eventReader) fill() error {
	if r.start > 0 {
		copy(r.buffer, r.buffer[r.start:r.end])
		r.end -= r.start
		r.start = 0
	}
	if r.end == len(r.buffer) {
		if r.end >= maxEventBytes {
			return errEventTooLong
		}
		r.buffer = append(r.buffer, make([]byte, len(r.buffer))...)
	}
	for range maxEmptyReads {
		n, err := r.source.Read(r.buffer[r.end:])
		if n > 0 || err != nil {
			r.at = time.Now()
			r.end += n
			r.failure = err
			return nil
		}
	}
	return io.ErrNoProgress
}
