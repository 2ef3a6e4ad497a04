package nccl

import "fmt"

// Message is one all-reduce by Ring or Tree.
type Message struct {
	Algorithm string // "Ring" or "Tree"
	Protocol  string // "LL", "LL128" or "Simple"
	Bytes     int64
	Ranks     int
	// Channels that the communicator has.
	Channels int
	// Threads of a block: NCCL_NTHREADS, or NCCL_LL128_NTHREADS for LL128.
	// 0 is the default: 512, and 640 for LL128.
	Threads int
}

// ChannelsForMessage returns how many channels a message really gets, whatever
// the channel limits say: a small message gets few. With T threads and W bytes
// of work for each,
//
//	channels = floor(bytes / (T × W)), at least 1, at most those there are
//
// where W is 8 × ranks for Ring LL, 8 for Tree LL and for LL128, 64 for
// Simple. From 2.24 on a channel also gets no less than a minimum piece: 8 KiB
// in 2.24 and 2.25; then 2 KiB for LL and 8 KiB else; from 2.29 on 4 and 16 KiB.
//
// The formula holds from 2.22 to 2.31; an earlier or unknown version is an
// error. Source: NVIDIA/nccl src/enqueue.cc.
func ChannelsForMessage(v Version, m Message) (int, error) {
	if !v.AtLeast(release(22)) {
		return 0, fmt.Errorf("channels of a message: the rule of NCCL %s is not known, that of 2.22 and later is", v)
	}
	if m.Bytes < 0 || m.Ranks < 1 || m.Channels < 1 || m.Threads < 0 {
		return 0, fmt.Errorf("channels of a message: %d bytes, %d ranks, %d channels, %d threads: ranks and channels must be positive",
			m.Bytes, m.Ranks, m.Channels, m.Threads)
	}
	work, threads, err := workPerThread(m)
	if err != nil {
		return 0, err
	}
	channels := m.Bytes / (threads * work)
	if piece := minimumPiece(v, m.Protocol == "LL"); piece > 0 {
		channels = min(channels, m.Bytes/piece)
	}
	return int(min(max(channels, 1), int64(m.Channels))), nil
}

// workPerThread returns the thread threshold in bytes, and the threads.
func workPerThread(m Message) (work, threads int64, err error) {
	threads = int64(m.Threads)
	if threads == 0 {
		threads = pick(m.Protocol == "LL128", 640, 512)
	}
	switch {
	case m.Algorithm != "Ring" && m.Algorithm != "Tree":
		return 0, 0, fmt.Errorf("channels of a message: algorithm %q is neither Ring nor Tree", m.Algorithm)
	case m.Protocol == "LL" && m.Algorithm == "Ring":
		return 8 * int64(m.Ranks), threads, nil
	case m.Protocol == "LL" || m.Protocol == "LL128":
		return 8, threads, nil
	case m.Protocol == "Simple":
		return 64, threads, nil
	default:
		return 0, 0, fmt.Errorf("channels of a message: protocol %q is none of LL, LL128 and Simple", m.Protocol)
	}
}

// minimumPiece is the least work of a channel in bytes, 0 before 2.24.
func minimumPiece(v Version, lowLatency bool) int64 {
	const kib = 1024
	switch {
	case v.Before(release(24)):
		return 0
	case v.Before(release(26)):
		return 8 * kib
	case v.Before(release(29)):
		return pick(lowLatency, 2*kib, 8*kib)
	default:
		return pick(lowLatency, 4*kib, 16*kib)
	}
}
