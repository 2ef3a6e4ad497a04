package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"nocturne/search"
)

// optunaSamplers are those that optuna.py knows, by the names in the tables.
var optunaSamplers = map[string]string{"optuna-tpe": "tpe", "optuna-gp": "gp", "optuna-cmaes": "cmaes"}

//go:embed optuna.py
var optunaScript string

// missingError says that a program or library is not installed.
type missingError struct {
	sampler, what string
}

func (e *missingError) Error() string {
	return fmt.Sprintf("%s is left out: %s; install Optuna for the python3 in use (python3-optuna of Debian, or pip; its GPSampler needs torch), or name another with -python", e.sampler, e.what)
}

// optuna runs Python processes that serve Optuna's samplers, as many as campaigns
// run at the same time, and keeps them for the next ones.
type optuna struct {
	// start begins a process on behalf of a sampler.
	start func(sampler string) (*pythonProcess, error)

	mutex sync.Mutex
	idle  []*pythonProcess
}

// newOptuna has no process yet. They live as long as ctx, and not only as long as
// the campaigns that need them.
func newOptuna(ctx context.Context, python string) *optuna {
	return &optuna{start: func(sampler string) (*pythonProcess, error) { return startPython(ctx, python, sampler) }}
}

type pythonProcess struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// lease returns a sampler for one campaign. It holds the campaign's state, unlike
// those of package search.
func (o *optuna) lease(name, kind string) (search.Sampler, func(), error) {
	o.mutex.Lock()
	var process *pythonProcess
	if last := len(o.idle) - 1; last >= 0 {
		process, o.idle = o.idle[last], o.idle[:last]
	}
	o.mutex.Unlock()
	if process == nil {
		var err error
		if process, err = o.start(name); err != nil {
			return nil, nil, err
		}
	}
	release := func() {
		o.mutex.Lock()
		o.idle = append(o.idle, process)
		o.mutex.Unlock()
	}
	return &optunaSampler{name: name, kind: kind, process: process}, release, nil
}

// close ends the processes.
func (o *optuna) close() error {
	var faults []error
	for _, process := range o.idle {
		faults = append(faults, process.in.Close(), process.command.Wait())
	}
	o.idle = nil
	return errors.Join(faults...)
}

func startPython(ctx context.Context, python, sampler string) (*pythonProcess, error) {
	command := exec.CommandContext(ctx, python, "-c", optunaScript)
	command.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("optuna: %w", err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("optuna: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, &missingError{sampler, err.Error()}
	}
	process := &pythonProcess{command: command, in: in, out: bufio.NewScanner(out)}
	greeting, err := process.read()
	if err == nil && greeting.Missing != "" {
		err = &missingError{sampler, greeting.Missing}
	}
	if err != nil {
		return nil, errors.Join(err, in.Close(), command.Wait())
	}
	return process, nil
}

// reply is a line of optuna.py.
type reply struct {
	Levels  []int  `json:"levels"`
	Missing string `json:"missing"`
	Error   string `json:"error"`
}

func (p *pythonProcess) read() (reply, error) {
	var r reply
	if !p.out.Scan() {
		return r, errors.Join(errors.New("optuna: python ended without an answer"), p.out.Err())
	}
	if err := json.Unmarshal(p.out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("optuna answered %q: %w", p.out.Text(), err)
	}
	if r.Error != "" {
		return r, errors.New("optuna: " + r.Error)
	}
	return r, nil
}

func (p *pythonProcess) call(verb string, body any) (reply, error) {
	line, err := json.Marshal(map[string]any{verb: body})
	if err != nil {
		return reply{}, fmt.Errorf("optuna: %w", err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return reply{}, fmt.Errorf("optuna: %w", err)
	}
	return p.read()
}

// optunaSampler is one study of Optuna. Knobs are given as levels: ordered ones as
// integers, the others as categories. Knobs that do not matter are asked for all the
// same, since Optuna's relative samplers need one space, and then dropped.
type optunaSampler struct {
	name, kind string
	process    *pythonProcess
	knobs      []search.Knob
	told       int
}

func (s *optunaSampler) Name() string { return s.name }

type optunaKnob struct {
	ID      string `json:"id"`
	Levels  int    `json:"levels"`
	Ordered bool   `json:"ordered"`
}

func (s *optunaSampler) Ask(_ context.Context, request search.Request) (search.Proposal, error) {
	if s.knobs == nil {
		if err := s.begin(request); err != nil {
			return search.Proposal{}, err
		}
	}
	for ; s.told < len(request.History); s.told++ {
		if err := s.tell(&request.History[s.told], request.Minimize); err != nil {
			return search.Proposal{}, err
		}
	}
	answer, err := s.process.call("ask", struct{}{})
	if err != nil {
		return search.Proposal{}, err
	}
	if len(answer.Levels) != len(s.knobs) {
		return search.Proposal{}, fmt.Errorf("optuna: %d levels for %d knobs", len(answer.Levels), len(s.knobs))
	}
	partial := make(search.Values, len(s.knobs))
	for i, level := range answer.Levels {
		partial[s.knobs[i].ID] = s.knobs[i].Levels[level]
	}
	values, err := request.Space.Complete(partial)
	return search.Proposal{Values: values, Reason: s.name}, err
}

func (s *optunaSampler) begin(request search.Request) error {
	s.knobs = request.Space.Knobs()
	knobs := make([]optunaKnob, len(s.knobs))
	for i, knob := range s.knobs {
		ordered := knob.Kind == search.Ordinal || knob.Kind == search.Integer || knob.Kind == search.Log2
		knobs[i] = optunaKnob{knob.ID, len(knob.Levels), ordered && len(knob.Levels) > 1}
	}
	answer, err := s.process.call("new", map[string]any{"sampler": s.kind, "seed": request.Seed, "knobs": knobs})
	if err == nil && answer.Missing != "" {
		err = &missingError{s.name, answer.Missing}
	}
	return err
}

// tell reports a trial; those asked for are told in the order in which they were
// asked.
func (s *optunaSampler) tell(o *search.Observation, minimize bool) error {
	levels := make([]int, len(s.knobs))
	for i := range s.knobs {
		value, given := o.Values[s.knobs[i].ID]
		if !given {
			value = s.knobs[i].Default
		}
		for level := range s.knobs[i].Levels {
			if s.knobs[i].Levels[level] == value {
				levels[i] = level
			}
		}
	}
	body := map[string]any{"levels": levels, "value": nil}
	if o.Outcome == search.Measured {
		body["value"] = o.Value
		if minimize {
			body["value"] = -o.Value
		}
	}
	_, err := s.process.call("tell", body)
	return err
}
