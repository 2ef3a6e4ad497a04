package supervise

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// Ports are taken from here up to the start of the ephemeral range. A server
	// may bind minutes after its start, and nobody is given these unasked.
	firstPort = 15000
	// avoidedPort is the default of PyTorch's rendezvous, which servers use beside
	// their own port.
	avoidedPort = 29500
	// portAttempts bounds the search for a free port.
	portAttempts = 200
)

// Port is a free TCP port, held until it is released.
type Port struct {
	address netip.AddrPort
	release func() error
}

// ReservePort finds a free TCP port on a literal loopback address, "127.0.0.1"
// or "::1", and keeps others from it. Release it just before the server starts.
func ReservePort(address string) (*Port, error) {
	ip, err := netip.ParseAddr(address)
	if err != nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("reserve a port on %q: a literal loopback address such as 127.0.0.1 is needed", address)
	}
	last := ephemeralStart() - 1
	for range portAttempts {
		port := firstPort + rand.IntN(last-firstPort+1)
		if port == avoidedPort {
			continue
		}
		if fd, err := bind(netip.AddrPortFrom(ip, uint16(port))); err == nil {
			return newPort(ip, port, fd), nil
		}
	}
	return nil, fmt.Errorf("reserve a port on %s: none of %d tried between %d and %d is free",
		address, portAttempts, firstPort, last)
}

func newPort(ip netip.Addr, port, fd int) *Port {
	return &Port{
		address: netip.AddrPortFrom(ip, uint16(port)),
		release: sync.OnceValue(func() error { return unix.Close(fd) }),
	}
}

// Address is the port with its address, as in a URL.
func (p *Port) Address() string { return p.address.String() }

// Number is the port alone.
func (p *Port) Number() int { return int(p.address.Port()) }

// Release frees the port for the server. It may be called again.
func (p *Port) Release() error { return p.release() }

// bind takes a port without listening on it: nobody can connect to the wrong
// process meanwhile.
func bind(address netip.AddrPort) (int, error) {
	family, sockaddr := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(address.Port()), Addr: address.Addr().As16()})
	if address.Addr().Is4() {
		family, sockaddr = unix.AF_INET, &unix.SockaddrInet4{Port: int(address.Port()), Addr: address.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, sockaddr); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// ephemeralStart is the first port that the kernel gives to sockets that ask for
// none in particular.
func ephemeralStart() int {
	const usual, least = 32768, firstPort + 1000
	data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return usual
	}
	var start int
	if _, err := fmt.Fscan(strings.NewReader(string(data)), &start); err != nil || start < least {
		return usual // the whole range is ephemeral: then one place is as good as another
	}
	return start
}
