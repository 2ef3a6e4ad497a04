package runnertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nocturne/runners"
)

// HostFunc returns a host to test. Every host that it returns within one test
// stands for the same machine, on which it may use the running test binary.
type HostFunc func(testing.TB) runners.Host

// TestHost checks what every [runners.Host] has to keep.
func TestHost(t *testing.T, newHost HostFunc) {
	for name, check := range map[string]func(*testing.T, HostFunc){
		"failures by stage":                    failuresByStage,
		"prune ends the trial":                 pruneEndsTheTrial,
		"a cancelled trial stops its server":   cancelledTrialStopsItsServer,
		"nothing starts that is not on record": nothingStartsThatIsNotOnRecord,
		"a lock names its holder":              lockNamesItsHolder,
		"what has ended needs no recovery":     endedNeedsNoRecovery,
		"the fingerprint has keys":             fingerprintHasKeys,
	} {
		t.Run(name, func(t *testing.T) { check(t, newHost) })
	}
}

func pruneEndsTheTrial(t *testing.T, newHost HostFunc) {
	observer := &Recorder{Decide: func(runners.Round) runners.RoundDecision { return runners.Prune }}
	result := newHost(t).Run(t.Context(), ServerJob(t), observer)
	if result.Outcome != runners.Pruned || result.Failure != nil {
		t.Errorf("outcome %s, failure %+v", result.Outcome, result.Failure)
	}
	if len(result.Points) != 1 || len(result.Points[0].Rounds) != 1 {
		t.Errorf("points %+v, expected the one round that was measured", result.Points)
	}
}

func cancelledTrialStopsItsServer(t *testing.T, newHost HostFunc) {
	for _, stage := range []runners.Stage{runners.Preparing, runners.Launching, runners.Loading, runners.Measuring} {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			observer := &Recorder{OnStage: func(entered runners.Stage) {
				if entered == stage {
					cancel()
				}
			}}
			result := newHost(t).Run(ctx, ServerJob(t, "--workers=1", "--setsid"), observer)
			if result.Outcome != runners.Interrupted {
				t.Errorf("outcome %s %+v, expected interrupted", result.Outcome, result.Failure)
			}
			WantNothingLeft(t, observer)
		})
	}
}

func nothingStartsThatIsNotOnRecord(t *testing.T, newHost HostFunc) {
	observer := &Recorder{Refuse: errors.New("the store is full")}
	marker := filepath.Join(t.TempDir(), "started")
	job := ServerJob(t)
	job.Args = []string{"touch", marker, "--port=${port}"}
	result := newHost(t).Run(t.Context(), job, observer)
	WantFailure(t, result, runners.Failed, runners.ClassEnvironment, "launch_not_recorded")
	if _, err := os.Stat(marker); err == nil {
		t.Error("the server was started although the launch is not on record")
	}
	WantNothingLeft(t, observer)
}

func lockNamesItsHolder(t *testing.T, newHost HostFunc) {
	host, other := newHost(t), newHost(t)
	all := runners.GPUSelection{All: true}

	release, err := host.Lock(t.Context(), all, "campaign k25-eagle3")
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Lock(t.Context(), all, "campaign b")
	var locked *runners.LockedError
	if !errors.As(err, &locked) || !strings.Contains(locked.Holder, "campaign k25-eagle3") {
		t.Errorf("second lock: %v, expected the holder's name", err)
	}
	release()
	again, err := other.Lock(t.Context(), all, "campaign b")
	if err != nil {
		t.Fatalf("lock after the release: %v", err)
	}
	again()
	again() // a second release does no harm
}

func endedNeedsNoRecovery(t *testing.T, newHost HostFunc) {
	host, observer := newHost(t), &Recorder{}
	WantComplete(t, host.Run(t.Context(), ServerJob(t), observer))
	for _, launch := range append(observer.Launches, runners.Launch{}) {
		if err := host.Recover(t.Context(), launch); err != nil {
			t.Errorf("recover %+v: %v", launch, err)
		}
	}
}

func fingerprintHasKeys(t *testing.T, newHost HostFunc) {
	host := newHost(t)
	fingerprint, err := host.Fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if host.Name() == "" || !strings.HasPrefix(fingerprint.Hardware.Key, "hw1:") || !strings.HasPrefix(fingerprint.Stack.Key, "st1:") {
		t.Errorf("host %q, hardware %q, stack %q", host.Name(), fingerprint.Hardware.Key, fingerprint.Stack.Key)
	}
}
