// The seeded plan of a run (when each request starts, whether it is long, which edge sends it), and the edges that send
// them. The same seed gives the same plan, so every peer of a round gets the same traffic.
package main

import (
	"fmt"
	"math/rand"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

type plan struct {
	arrivals []time.Duration
	long     []bool
	edge     []int
}

// closedPlan is the length of the repeated mix in the closed loop, in which the number of requests is not known in
// advance.
const closedPlan = 4096

func newPlan(opts options) *plan {
	arrivals := rand.New(rand.NewSource(opts.seed))
	mix := rand.New(rand.NewSource(opts.seed + 1_000_003))
	edges := rand.New(rand.NewSource(opts.seed + 2_000_003))
	p := &plan{}
	add := func(at time.Duration) {
		p.arrivals = append(p.arrivals, at)
		p.long = append(p.long, mix.Float64() < opts.longShare)
		p.edge = append(p.edge, opts.nextEdge(edges))
	}
	if opts.closed > 0 {
		for range closedPlan {
			add(0)
		}
		return p
	}
	begin := time.Duration(0)
	for _, step := range opts.steps {
		end := begin + step.duration
		for at := begin.Seconds(); ; {
			at += arrivals.ExpFloat64() / step.rate
			instant := time.Duration(at * float64(time.Second))
			if instant >= end {
				break
			}
			add(instant)
		}
		begin = end
	}
	return p
}

// nextEdge is the edge of the next request.
func (opts options) nextEdge(dice *rand.Rand) int {
	if !opts.uneven {
		return dice.Intn(opts.edges)
	}
	share := dice.Intn(opts.edges * (opts.edges + 1) / 2)
	edge := 0
	for ; share > edge; edge++ {
		share -= edge + 1
	}
	return edge
}

// edgeOf is the edge that sends a request.
func (p *plan) edgeOf(seq uint64) int {
	return p.edge[seq%uint64(len(p.edge))]
}

// targetOf is the target of a request, of so many: that of its edge.
func (p *plan) targetOf(seq uint64, targets int) int {
	return p.edgeOf(seq) % targets
}

func (p *plan) isLong(seq uint64) bool { return p.long[seq%uint64(len(p.long))] }

// edges are independent clients, each with its own pool of kept-alive connections, like the nodes of a CDN. The edge of
// each request is random, so that the connection has nothing to do with the free worker.
type edges struct {
	plan  *plan
	short *url.URL
	long  *url.URL
	hosts []string
	from  []string
	pools []*http.Transport
}

func newEdges(opts options, plan *plan, targets []string) *edges {
	e := &edges{plan: plan, short: parsePath(opts.short), long: parsePath(opts.long)}
	for _, target := range targets {
		e.hosts = append(e.hosts, parsePath(target).Host)
	}
	for edge := range opts.edges {
		if opts.from != "" {
			e.from = append(e.from, fmt.Sprintf(opts.from, edge))
		}
		e.pools = append(e.pools, &http.Transport{
			MaxIdleConnsPerHost: 10_000,
			DisableCompression:  true,
			IdleConnTimeout:     90 * time.Second,
		})
	}
	return e
}

func (e *edges) client(timeout time.Duration) *http.Client {
	return &http.Client{Transport: e, Timeout: timeout}
}

// RoundTrip sends a request as its number in the plan says. vegeta writes the number into this header.
func (e *edges) RoundTrip(request *http.Request) (*http.Response, error) {
	seq, err := strconv.ParseUint(request.Header.Get("X-Vegeta-Seq"), 10, 64)
	if err != nil {
		return nil, err
	}
	place := e.short
	if e.plan.isLong(seq) {
		place = e.long
	}
	planned := *request
	target := *request.URL
	target.Path, target.RawQuery = place.Path, place.RawQuery
	target.Host = e.hosts[e.plan.targetOf(seq, len(e.hosts))]
	planned.Host = target.Host
	planned.URL = &target
	edge := e.plan.edgeOf(seq)
	if e.from != nil {
		planned.Header = request.Header.Clone()
		planned.Header.Set("X-Forwarded-For", e.from[edge])
	}
	return e.pools[edge].RoundTrip(&planned)
}

func parsePath(text string) *url.URL {
	place, err := url.Parse(text)
	if err != nil {
		panic("load: not a path: " + text)
	}
	return place
}
