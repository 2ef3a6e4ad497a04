package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// SMI is a [Sampler] that reads the GPUs of this machine by one nvidia-smi, which
// runs as long as the round does and prints a line for each GPU at an interval.
type SMI struct {
	// Program is the name or path of nvidia-smi.
	Program string
	// Indices are the GPUs to watch; empty means all.
	Indices []int
	// Interval between two readings; zero is a second.
	Interval time.Duration
}

// FindSMI returns a sampler for the GPUs of this machine; nil when nvidia-smi is
// not installed, so that there is nothing to watch.
func FindSMI(indices []int) Sampler {
	program, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil
	}
	return SMI{Program: program, Indices: indices}
}

const (
	smiInterval = time.Second
	// smiStop is how long nvidia-smi may take to end after it was asked to.
	smiStop = 2 * time.Second
)

// throttleFields are the names of the reasons' bits, the present one first: it
// came with driver 535, which still knows the older one.
var throttleFields = []string{"clocks_event_reasons.active", "clocks_throttle_reasons.active"}

// Watch implements [Sampler].
func (s SMI) Watch(ctx context.Context, note func(GPUSample)) error {
	var err error
	for _, field := range throttleFields {
		read := false
		err = s.watch(ctx, field, func(sample GPUSample) { read = true; note(sample) })
		if err == nil || read || ctx.Err() != nil || !errors.Is(err, errUnknownField) {
			break
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

var errUnknownField = errors.New("a field is unknown to this driver")

func (s SMI) watch(ctx context.Context, throttle string, note func(GPUSample)) error {
	interval := s.Interval
	if interval == 0 {
		interval = smiInterval
	}
	command := exec.CommandContext(ctx, s.Program,
		"--query-gpu=index,clocks.sm,power.draw,temperature.gpu,"+throttle, "--format=csv,noheader,nounits",
		"--loop-ms="+strconv.FormatInt(interval.Milliseconds(), 10))
	// Asked to end, it still prints what it has; killed, that could be lost.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = smiStop
	var complaint bytes.Buffer
	command.Stderr = &complaint
	output, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("running nvidia-smi: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("running nvidia-smi: %w", err)
	}
	odd := s.read(output, note)
	if err := command.Wait(); err != nil {
		text := excerpt(append([]byte(odd+" "), complaint.Bytes()...))
		if strings.Contains(text, "is not a valid field") {
			return fmt.Errorf("nvidia-smi: %s: %w", text, errUnknownField)
		}
		return fmt.Errorf("nvidia-smi: %w: %s", err, text)
	}
	return nil
}

// read hands on what the lines say until there are no more, and returns the
// first line that was no reading.
func (s SMI) read(output io.Reader, note func(GPUSample)) string {
	odd := ""
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		sample, err := parseSMILine(lines.Text())
		switch {
		case err != nil && odd == "":
			odd = lines.Text()
		case err == nil && (len(s.Indices) == 0 || slices.Contains(s.Indices, sample.GPU)):
			note(sample)
		}
	}
	return odd
}

// parseSMILine reads one line of the table. Numbers that a GPU does not have,
// such as "[N/A]" or "[Not Supported]", are NaN.
func parseSMILine(line string) (GPUSample, error) {
	fields := strings.Split(line, ",")
	const want = 5
	if len(fields) != want {
		return GPUSample{}, fmt.Errorf("nvidia-smi: line %q has %d fields, expected %d", line, len(fields), want)
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	gpu, err := strconv.Atoi(fields[0])
	if err != nil || gpu < 0 {
		return GPUSample{}, fmt.Errorf("nvidia-smi: line %q does not begin with the index of a GPU", line)
	}
	sample := GPUSample{GPU: gpu, SMClock: numberOrNaN(fields[1]), Power: numberOrNaN(fields[2]), Temperature: numberOrNaN(fields[3])}
	if bits, err := strconv.ParseUint(strings.TrimPrefix(fields[4], "0x"), 16, 64); err == nil {
		sample.Throttle = Throttle(bits)
	}
	return sample, nil
}

func numberOrNaN(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}
