package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// restTime is how long a stream may rest within a line before its start is
	// handed out.
	restTime = 25 * time.Millisecond
	// pipeSize is asked for the server's output, so that a burst does not make it
	// wait for the supervisor to be scheduled.
	pipeSize = 1 << 20
)

// output drains the two streams of a server in the supervisor, for as long as
// any process of the tree holds them open.
type output struct {
	log      io.WriteCloser // nil without a log
	warn     func(string)
	warnOnce sync.Once
	queue    *lineQueue
	readers  [2]*os.File
	done     chan struct{} // closed when log and lines are complete
}

// newOutput makes the pipes. The files to give to the server come back; the
// caller closes them.
func newOutput(log io.WriteCloser, warn func(string)) (*output, [2]*os.File, error) {
	o := &output{log: log, warn: warn, queue: newLineQueue(), done: make(chan struct{})}
	var writers [2]*os.File
	for i := range writers {
		r, w, err := os.Pipe()
		if err != nil {
			for j := range i {
				o.readers[j].Close()
				writers[j].Close()
			}
			return nil, writers, err
		}
		o.readers[i], writers[i] = r, w
		// A larger pipe is a comfort: an unprivileged user may have used up his share.
		_, _ = unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, pipeSize)
	}
	return o, writers, nil
}

// run drains both streams until they end and sends the lines to w.
func (o *output) run(w io.WriteCloser) {
	var readers, sender sync.WaitGroup
	for i, r := range o.readers {
		readers.Go(func() { o.drain(r, Stdout+Stream(i)) })
	}
	sender.Go(func() { sendLines(o.queue, w) })
	readers.Wait()
	if o.log != nil {
		if err := o.log.Close(); err != nil {
			o.logFailed(err)
		}
	}
	o.queue.close()
	sender.Wait()
	close(o.done)
}

// drain reads one stream to its end.
func (o *output) drain(r *os.File, stream Stream) {
	defer r.Close()
	lines := &splitter{stream: stream, emit: o.queue.push}
	buffer := make([]byte, 64<<10)
	for {
		var deadline time.Time
		if lines.unfinished() {
			deadline = time.Now().Add(restTime)
		}
		if err := r.SetReadDeadline(deadline); err != nil {
			o.warn("output is shown late within a line: " + err.Error())
		}
		n, err := r.Read(buffer)
		if n > 0 {
			o.record(buffer[:n])
			lines.write(buffer[:n])
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			lines.pause()
		case err != nil:
			lines.close()
			return
		}
	}
}

// record adds to the log. A log that cannot be written is told once: the server
// goes on, and its lines still reach the tuner.
func (o *output) record(p []byte) {
	if o.log == nil {
		return
	}
	if _, err := o.log.Write(p); err != nil {
		o.logFailed(err)
	}
}

func (o *output) logFailed(err error) {
	o.warnOnce.Do(func() { o.warn("the server's log is incomplete: " + err.Error()) })
}

// finish waits for the end of the output once no process of the tree is left. A
// stranger that was handed the pipe may still hold it open: then it is cut off.
func (o *output) finish(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-o.done:
		return
	case <-timer.C:
	}
	for _, r := range o.readers {
		r.Close()
	}
	timer.Reset(limit)
	select {
	case <-o.done:
	case <-timer.C: // the tuner does not read its lines; the log has them
	}
}

// sendLines writes the lines of the queue to w until the queue ends or nobody
// reads any more.
func sendLines(queue *lineQueue, w io.WriteCloser) {
	defer w.Close()
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for {
		line, err := queue.pop(context.Background())
		if err != nil {
			return
		}
		if err := encoder.Encode(line); err != nil {
			return
		}
	}
}

// receiveLines is the other end: it fills the queue until r ends.
func receiveLines(r io.Reader, queue *lineQueue) {
	defer queue.close()
	decoder := json.NewDecoder(r)
	for {
		var line Line
		if err := decoder.Decode(&line); err != nil {
			return
		}
		queue.push(line)
	}
}
