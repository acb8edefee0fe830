package server

import (
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// allowance bounds how often something happens.
type allowance struct {
	what      string // for the caller that is refused
	perSecond rate.Limit
	burst     int // at once
}

// The allowances of a server that other computers reach. An address is an IPv4 address or a network
// of IPv6 (/64). docs/howto/serve.md shows them all.
var (
	addressRequests = &allowance{"requests from this address", 50, 500}
	tokenRequests   = &allowance{"requests with this token", 500, 2000} // a fleet of workers may share one
	tokenUploads    = &allowance{"uploads with this token", 20, 1000}
	failedSignIns   = &allowance{"wrong tokens from this address", 0.2, 20}
)

const (
	// tokenUploading bounds the uploads with one token at the same time, uploading those of all.
	tokenUploading = 32
	uploading      = 256
	// headerTime and maxHeader bound the header of a request.
	headerTime = 10 * time.Second
	maxHeader  = 64 << 10
	// maxKnown bounds the addresses and tokens that are remembered of each allowance.
	maxKnown = 10_000
)

// limits counts what callers use up.
type limits struct {
	now func() time.Time
	mu  sync.Mutex
	of  map[*allowance]map[string]*rate.Limiter
	// uploads counts requests that upload now, by token.
	uploads map[string]int
	total   int
}

func newLimits() *limits {
	return &limits{now: time.Now, of: map[*allowance]map[string]*rate.Limiter{}, uploads: map[string]int{}}
}

// allow takes one of an allowance, and reports whether one was left.
func (l *limits) allow(a *allowance, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, known := l.now(), l.of[a]
	if known == nil {
		known = map[string]*rate.Limiter{}
		l.of[a] = known
	}
	if known[key] == nil && len(known) >= maxKnown {
		for k, r := range known { // who used up nothing loses nothing
			if r.TokensAt(now) >= float64(a.burst) {
				delete(known, k)
			}
		}
		if len(known) >= maxKnown {
			return false
		}
	}
	if known[key] == nil {
		known[key] = rate.NewLimiter(a.perSecond, a.burst)
	}
	return known[key].AllowN(now, 1)
}

// upload counts an upload until end is called, which is nil if there are too many.
func (l *limits) upload(key string) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.uploads[key] >= tokenUploading || l.total >= uploading {
		return nil
	}
	l.uploads[key]++
	l.total++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.total--
		if l.uploads[key]--; l.uploads[key] == 0 {
			delete(l.uploads, key)
		}
	}
}

// refuse answers a caller that has nothing left of an allowance.
func (a *allowance) refuse(w http.ResponseWriter) {
	seconds := max(1, int(1/a.perSecond))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	problem(w, http.StatusTooManyRequests, "too many "+a.what+": wait "+(time.Duration(seconds)*time.Second).String())
}

// network is what of a caller's address counts, "" for an address that cannot be read.
func network(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return ""
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is6() {
		p, _ := ip.Prefix(64)
		return p.String()
	}
	return ip.String()
}
