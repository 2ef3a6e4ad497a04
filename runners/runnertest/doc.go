// Package runnertest tests implementations of [runners.Host].
//
// [TestHost] is the conformance suite. The package also holds a server and a
// command with any fault at an exact moment (see [Dispatch]), jobs that launch
// them, and an observer that keeps everything. The simulated server of package
// sim is the adversary for whole campaigns; these fakes are for single moments.
package runnertest
