package servers

import "time"

// custom describes a server of which nothing is known but that it speaks the
// OpenAI API. The common failures of CUDA, NCCL and Python are recognised.
var custom = Kind{
	Name:  "custom",
	Title: "custom server",
	Ready: Ready{
		Paths: []string{"/health", "/v1/models"}, Status: 200, Timeout: 25 * time.Second,
	},
	Models:    "/v1/models",
	Launch:    []LaunchVariable{readableEnvironment},
	Processes: Processes{Helpers: commonHelpers},
	Failures:  commonFailures(),
}
