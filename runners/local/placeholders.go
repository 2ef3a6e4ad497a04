package local

import (
	"net/netip"
	"strconv"
	"strings"

	"nocturne/runners"
	"nocturne/runners/servers"
	"nocturne/runners/supervise"
)

// loopback is the address that servers are told to listen on. It is literal,
// because a name such as localhost may stand for two.
const loopback = "127.0.0.1"

const portPlaceholder = "${port}"

// placeholders fills what only the host knows into arguments and values. Each
// text is passed over once, so that what was filled in is not looked at again,
// and stays one argument.
type placeholders struct {
	port, host, trialDir, program string
}

func (p placeholders) fill(texts []string) []string {
	// A literal ${ is written as $${; it comes first, so that it wins.
	replacer := strings.NewReplacer("$${", "${",
		portPlaceholder, p.port, "${host}", p.host, "${trial_dir}", p.trialDir, "${nocturne}", p.program)
	filled := make([]string, len(texts))
	for i, text := range texts {
		filled[i] = replacer.Replace(text)
	}
	return filled
}

func (p placeholders) fillMap(values map[string]string) map[string]string {
	filled := make(map[string]string, len(values))
	for name, value := range values {
		filled[name] = p.fill([]string{value})[0]
	}
	return filled
}

// listenHost is the literal address at which the server will be reached: that
// of its own --host, with wildcards at their loopback, else 127.0.0.1.
func listenHost(args []string) string {
	given, _ := servers.Command{Args: args}.Flag("--host")
	address, err := netip.ParseAddr(strings.Trim(given, "[]"))
	switch {
	case err != nil:
		return loopback
	case address.IsUnspecified() && address.Is6():
		return "::1"
	case address.IsUnspecified():
		return loopback
	}
	return address.String()
}

// reservePort finds the port of the server: a free one for ${port}, or the one
// that the command names itself, which must then be free.
func reservePort(job *runners.Job) (host string, port int, release func() error, err error) {
	host = listenHost(job.Args)
	if !usesPlaceholder(job) {
		fixed, given := servers.Command{Args: job.Args}.Int("--port")
		if !given {
			return "", 0, nil, fail(servers.ReasonArgumentRefused,
				"the command names neither ${port} nor --port, so nobody knows where the server listens: add --port=${port}")
		}
		return host, fixed, func() error { return nil }, nil
	}
	reserved, err := supervise.ReservePort(reservable(host))
	if err != nil {
		return "", 0, nil, fail(servers.ReasonPortInUse, "%v", err)
	}
	return host, reserved.Number(), reserved.Release, nil
}

// reservable is the address on which a port can be kept from others.
func reservable(host string) string {
	if address, err := netip.ParseAddr(host); err == nil && address.IsLoopback() {
		return host
	}
	return loopback
}

func usesPlaceholder(job *runners.Job) bool {
	for _, arg := range job.Args {
		if strings.Contains(arg, portPlaceholder) {
			return true
		}
	}
	for _, value := range job.Env {
		if strings.Contains(value, portPlaceholder) {
			return true
		}
	}
	return false
}

// address joins host and port as in a URL.
func address(host string, port int) string {
	return netip.AddrPortFrom(netip.MustParseAddr(host), uint16(port)).String()
}

// otherLoopback is the same port at the loopback address of the other family.
func otherLoopback(address string) string {
	at := netip.MustParseAddrPort(address)
	other := netip.IPv6Loopback()
	if at.Addr().Is6() {
		other = netip.MustParseAddr(loopback)
	}
	return netip.AddrPortFrom(other, at.Port()).String()
}

func portText(port int) string { return strconv.Itoa(port) }
