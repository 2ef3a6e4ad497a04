package screen

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/output"
)

// Progress shows a campaign to a person: one line a finished trial and, on a
// terminal, a status line below that says where the running one is.
type Progress struct {
	mutex  sync.Mutex
	out    io.Writer
	live   bool
	colour bool
	stop   chan struct{}
	done   chan struct{}

	metric   string
	minimize bool
	baseline search.Values
	of       int
	finished int
	before   int // trials that had finished when this process began
	began    time.Time
	last     time.Time // when the latest trial finished
	trial    output.TrialStarted
	launched time.Time // when the running trial started
	stage    output.StageEntered
	entered  time.Time
	told     time.Time // when stage was
	best     string
	shown    bool // a status line is on the screen
	spoke    time.Time
}

const (
	// refresh is how often the status line of a terminal is drawn again.
	refresh = 500 * time.Millisecond
	// silence is how long a plain log may say nothing: a load of 15 minutes must
	// not look like a program that hangs.
	silence = 10 * time.Minute
)

// NewProgress returns a view for a person. live is for a terminal.
func NewProgress(out io.Writer, live, colour bool) *Progress {
	p := &Progress{out: out, live: live, colour: colour && live, stop: make(chan struct{}), done: make(chan struct{}), spoke: time.Now()}
	go p.redraw()
	return p
}

// redraw keeps the elapsed time of the status line moving; in a plain log it
// gives a sign of life now and then.
func (p *Progress) redraw() {
	defer close(p.done)
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.mutex.Lock()
			p.status()
			if !p.live && p.trial.Trial != 0 && time.Since(p.spoke) >= silence {
				p.line("%5s  %s", time.Now().Format("15:04"), p.statusText())
			}
			p.mutex.Unlock()
		}
	}
}

// Close removes the status line and ends the view.
func (p *Progress) Close() {
	close(p.stop)
	<-p.done
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.clear()
}

// Event shows one event.
func (p *Progress) Event(campaign store.Campaign, event store.Event) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.began.IsZero() {
		p.began = time.Now()
	}
	switch event.Name {
	case output.EventCampaignStarted:
		show(event, func(e output.CampaignStarted) { p.started(campaign, e) })
	case output.EventPlan:
		show(event, p.plan)
	case output.EventPhase:
		show(event, p.phase)
	case output.EventTrialStarted:
		show(event, p.trialStarted)
	case output.EventStage:
		show(event, p.stageEntered)
	case output.EventTrialFinished:
		show(event, p.trialFinished)
	case output.EventWarning:
		show(event, func(e output.Warning) { p.line("warning: %s", e.Message) })
	case output.EventVerdict:
		show(event, func(e output.VerdictReached) { p.verdict(campaign, e) })
	case output.EventCampaignFinished:
		show(event, func(e output.CampaignFinished) { p.campaignFinished(campaign, e) })
	}
}

func show[T any](event store.Event, do func(T)) {
	var payload T
	if json.Unmarshal(event.Payload, &payload) == nil {
		do(payload)
	}
}

func (p *Progress) started(campaign store.Campaign, e output.CampaignStarted) {
	p.metric, p.minimize = e.Objective.Metric, e.Objective.Direction == "minimize"
	p.finished, p.before, p.baseline = e.TrialsDone, e.TrialsDone, e.Baseline
	again := ""
	if e.Resumed {
		again = ", going on after " + count(e.TrialsDone, "finished trial", "finished trials")
	}
	p.line("campaign %s run %d on %s (%s)%s", campaign.Name, campaign.Run, e.Host, e.Hardware.Name, again)
	p.line("store    %s", e.Store)
	about := ""
	if !e.Exact {
		about = "about "
	}
	p.line("search   %s %s over %d knobs, %s%s configurations", e.Objective.Direction, p.metric, e.Knobs, about, thousands(e.Configurations))
}

func (p *Progress) plan(e output.PlanMade) {
	for _, line := range PlanLines(e.Plan) {
		p.line("%s", line)
	}
	p.line("")
	p.line("%5s  %5s  %-8s  %12s  %11s  %s", "ended", "trial", "role", p.metricHead(), "vs baseline", "settings")
}

func (p *Progress) metricHead() string {
	if unit := Unit(p.metric); unit != "" {
		return unit
	}
	return Clip(p.metric, 12)
}

func (p *Progress) phase(e output.PhaseEntered) {
	switch {
	case e.Until != nil:
		p.line("waiting until %s: %s", e.Until.Local().Format("Mon 15:04 MST"), e.Reason)
	case e.Launches > 1:
		end := ""
		if at := p.expectedEnd(); !at.IsZero() {
			end = ", the campaign may end about " + at.Format("Mon 15:04")
		}
		p.line("       %s: at most %d launches%s", e.Phase, e.Launches, end)
	}
}

func (p *Progress) trialStarted(e output.TrialStarted) {
	p.trial, p.of, p.stage, p.entered, p.launched = e, e.Of, output.StageEntered{}, time.Now(), time.Now()
	// What others found is no choice of this search, so it is told where from.
	if e.Role == store.RoleIncumbent || strings.HasPrefix(e.Reason, "recipe: ") {
		p.line("       %s", e.Reason)
	}
	p.status()
}

func (p *Progress) stageEntered(e output.StageEntered) {
	if e.Stage != p.stage.Stage {
		p.entered = time.Now()
	}
	p.stage, p.told = e, time.Now()
	p.status()
}

func (p *Progress) trialFinished(e output.TrialFinished) {
	value, ratio := "-", ""
	if e.Trial.Value != nil {
		value = valueText(e.Trial, p.minimize)
	}
	if e.Ratio != nil {
		ratio = Ratio(*e.Ratio)
	}
	if e.Trial.Failure != nil || e.Trial.State == store.TrialPruned {
		ratio = string(e.Trial.State)
		if e.Retried {
			ratio = "retry"
		}
	}
	mark := ""
	// The best of the search is none while the baseline beats it.
	better := e.BestRatio != nil && *e.BestRatio > 1
	if better && *e.BestTrial == e.Trial.Trial {
		mark = p.paint("32", "  <- best so far")
	}
	p.line("%5s  %5d  %-8s  %12s  %11s  %s%s", time.Now().Format("15:04"), e.Trial.Trial, e.Trial.Role, value, ratio,
		whatHappened(e.Trial, store.Configuration{Values: p.baseline}), mark)
	if !e.Retried {
		p.finished++
		p.last = time.Now()
	}
	if better {
		p.best = fmt.Sprintf("best %s (trial %d)", Ratio(*e.BestRatio), *e.BestTrial)
	}
	p.trial = output.TrialStarted{}
}

func (p *Progress) campaignFinished(campaign store.Campaign, e output.CampaignFinished) {
	switch e.State {
	case store.CampaignComplete:
	case store.CampaignInterrupted:
		p.line("interrupted after %s; nothing is lost, `nocturne resume %s` goes on", count(p.finished, "finished trial", "finished trials"), campaign.Name)
	default:
		p.line("campaign %s: %s", e.State, e.Cause)
		if !e.State.Ended() {
			p.line("nothing is lost; once the cause is mended, `nocturne resume %s` goes on", campaign.Name)
		}
	}
}

// line writes a line above the status line.
func (p *Progress) line(format string, args ...any) {
	p.clear()
	fmt.Fprintln(p.out, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	p.spoke = time.Now()
	p.status()
}

func (p *Progress) clear() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

// status draws the status line of a terminal.
func (p *Progress) status() {
	if !p.live || p.trial.Trial == 0 {
		return
	}
	width := 100
	if file, ok := p.out.(*os.File); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 10 {
			width = columns - 1
		}
	}
	fmt.Fprint(p.out, "\r\x1b[K"+p.paint("2", Clip(p.statusText(), width)))
	p.shown = true
}

// statusText says what runs, for how long, how long it usually takes, the best
// so far and when the campaign may end.
func (p *Progress) statusText() string {
	what := fmt.Sprintf("trial %d/%d %s", p.trial.Trial, p.of, p.trial.Role)
	if p.trial.Role == store.RoleManual {
		what = "trial" // the only one
	}
	parts := []string{what, p.stageText()}
	if p.best != "" {
		parts = append(parts, p.best)
	}
	if end := p.expectedEnd(); !end.IsZero() {
		layout := "15:04"
		if time.Until(end) > 12*time.Hour {
			layout = "Mon 15:04"
		}
		parts = append(parts, "ends about "+end.Format(layout))
	}
	return strings.Join(parts, "  |  ")
}

// expectedEnd goes by the mean duration of the trials that this process saw. The
// running one is taken to last as long, and not to end before now.
func (p *Progress) expectedEnd() time.Time {
	seen, left := p.finished-p.before, p.of-p.finished
	if seen <= 0 || left <= 0 {
		return time.Time{}
	}
	each := p.last.Sub(p.began) / time.Duration(seen)
	next := time.Now().Add(each) // the end of the next trial, of the running one if there is one
	if p.trial.Trial != 0 {
		next = p.launched.Add(each)
	}
	if now := time.Now(); next.Before(now) {
		next = now
	}
	return next.Add(each * time.Duration(left-1))
}

func (p *Progress) stageText() string {
	text := string(p.stage.Stage)
	if text == "" {
		text = "starting"
	}
	if p.stage.Phase != "" {
		text += " (" + strings.ReplaceAll(p.stage.Phase, "_", " ")
		if p.stage.Percent != nil {
			text += fmt.Sprintf(" %.0f %%", *p.stage.Percent)
		}
		text += ")"
	}
	text += " " + Span(time.Since(p.entered))
	left := 0.0
	if p.stage.RemainingS != nil {
		left = *p.stage.RemainingS - time.Since(p.told).Seconds()
	}
	switch {
	case left >= 1:
		text += ", about " + Seconds(left) + " left"
	case p.stage.UsualS != nil:
		text += ", usually " + Seconds(*p.stage.UsualS)
	}
	return text
}

func (p *Progress) paint(code, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// thousands writes a count with separators; large ones as a power of ten.
func thousands(count float64) string {
	if count >= 1e9 {
		return fmt.Sprintf("%.1e", count)
	}
	text := fmt.Sprintf("%.0f", count)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
