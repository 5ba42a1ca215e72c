// Command load sends open-loop Poisson traffic (or, with -closed, closed-loop traffic) and prints every hit as JSON.
// SIGTERM ends an open loop early: running requests are finished and printed. -plan prints the arrivals of an open loop and
// sends nothing. It knows vegeta and the arrival schedule.
// It knows nothing of the servers under test, and computes no statistics.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

type options struct {
	targets   []string
	short     string
	long      string
	longShare float64
	body      []byte
	steps     []step
	duration  time.Duration
	timeout   time.Duration
	seed      int64
	edges     int
	closed    uint64
	plan      bool
	from      string
	uneven    bool
}

// step is a part of an open loop with one rate.
type step struct {
	rate     float64
	duration time.Duration
}

// report is the output. Hits are rows of [long, status, start lag, latency, intended start, target, edge] with times in microseconds.
// The latency counts from the intended start, and the intended start from the beginning. Status 0 is a request without a
// response.
type report struct {
	// Microseconds since 1970, for comparisons with other clocks of this machine.
	Began   int64          `json:"began"`
	Seconds float64        `json:"seconds"`
	Planned int            `json:"planned"`
	Hits    [][7]int64     `json:"hits"`
	Errors  map[string]int `json:"errors"`
}

func main() {
	opts := parse()
	if opts.plan {
		printPlan(opts)
		return
	}
	var result report
	if opts.closed > 0 {
		result = runClosed(opts)
	} else {
		result = runOpen(opts)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func parse() options {
	var opts options
	targets := flag.String("targets", "", "base URLs, comma-separated; in an open loop each edge has one of several")
	flag.StringVar(&opts.short, "short", "/", "path and query of a short render")
	flag.StringVar(&opts.long, "long", "/", "path and query of a long render")
	flag.Float64Var(&opts.longShare, "long-share", 0.1, "share of long renders")
	body := flag.String("body", "", "file with JSON to POST, in place of GET")
	steps := flag.String("steps", "", "open loop: mean arrivals per second and how long, such as 100:5s,400:30s")
	flag.DurationVar(&opts.duration, "duration", 10*time.Second, "length of the closed loop")
	flag.DurationVar(&opts.timeout, "timeout", 30*time.Second, "when a client gives up")
	flag.Int64Var(&opts.seed, "seed", 1, "seed of arrivals, mix and edges")
	flag.IntVar(&opts.edges, "edges", 32, "independent keep-alive connection pools")
	flag.StringVar(&opts.from, "from", "", "X-Forwarded-For of each request, with %d for the number of its edge")
	flag.BoolVar(&opts.uneven, "uneven", false, "the second edge sends twice as many requests as the first, the third three times as many, and so on")
	flag.Uint64Var(&opts.closed, "closed", 0, "closed loop with so many requests at once per target")
	flag.BoolVar(&opts.plan, "plan", false, "print [intended start, long] of each request of an open loop, and send nothing")
	flag.Parse()
	if *body != "" {
		var unreadable error
		if opts.body, unreadable = os.ReadFile(*body); unreadable != nil {
			usage("-body: " + unreadable.Error())
		}
	}
	opts.targets = strings.Split(*targets, ",")
	if *targets == "" && !opts.plan {
		usage("-targets is needed")
	}
	for _, text := range strings.Split(*steps, ",") {
		if opts.closed > 0 {
			break
		}
		rate, duration, _ := strings.Cut(text, ":")
		next := step{}
		var wrongRate, wrongDuration error
		next.rate, wrongRate = strconv.ParseFloat(rate, 64)
		next.duration, wrongDuration = time.ParseDuration(duration)
		if wrongRate != nil || wrongDuration != nil || next.rate <= 0 || next.duration <= 0 {
			usage("-steps wants rate:duration, not " + strconv.Quote(text))
		}
		opts.steps = append(opts.steps, next)
	}
	return opts
}

func printPlan(opts options) {
	plan := newPlan(opts)
	rows := make([][2]int64, len(plan.arrivals))
	for i, at := range plan.arrivals {
		rows[i] = [2]int64{at.Microseconds(), longAsNumber(plan.long[i])}
	}
	if err := json.NewEncoder(os.Stdout).Encode(rows); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func longAsNumber(long bool) int64 {
	if long {
		return 1
	}
	return 0
}

func usage(why string) {
	fmt.Fprintln(os.Stderr, "load:", why)
	os.Exit(2)
}

// attacker sends its requests to targets: each edge to one of them, always the same.
func attacker(opts options, targets []string, plan *plan, more ...func(*vegeta.Attacker)) (*vegeta.Attacker, vegeta.Targeter) {
	all := append([]func(*vegeta.Attacker){
		vegeta.Client(newEdges(opts, plan, targets).client(opts.timeout)),
		vegeta.MaxBody(0), // read to the end, but not stored
	}, more...)
	request := vegeta.Target{Method: "GET", URL: targets[0]}
	if opts.body != nil {
		request = vegeta.Target{Method: "POST", URL: targets[0], Body: opts.body, Header: http.Header{"Content-Type": {"application/json"}}}
	}
	return vegeta.NewAttacker(all...), vegeta.NewStaticTargeter(request)
}

// runOpen sends each request at its scheduled time, whether or not earlier ones were answered: vegeta starts one more
// worker whenever all are busy, without a limit. The time between the scheduled and the real start (a late wake-up on a
// busy machine) is added to vegeta's own latency, which counts from the real start.
func runOpen(opts options) report {
	plan := newPlan(opts)
	pacer := &schedule{at: plan.arrivals}
	attack, targeter := attacker(opts, opts.targets, plan)
	out := report{Errors: map[string]int{}}
	hits := attack.Attack(targeter, pacer, 0, "")
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	defer signal.Stop(told)
	go func() {
		<-told
		attack.Stop()
	}()
	for hit := range hits {
		intended := pacer.began.Add(plan.arrivals[hit.Seq])
		lag := hit.Timestamp.Sub(intended)
		out.add(hit, plan, lag, plan.arrivals[hit.Seq], plan.targetOf(hit.Seq, len(opts.targets)))
	}
	out.Began = pacer.began.UnixMicro()
	out.Seconds = time.Since(pacer.began).Seconds()
	// All planned requests were started, unless the loop was ended early.
	out.Planned = len(out.Hits)
	return out
}

// runClosed measures capacity: a fixed number of requests at once, each followed by the next.
func runClosed(opts options) report {
	out := report{Errors: map[string]int{}}
	var mutex sync.Mutex
	var all sync.WaitGroup
	began := time.Now()
	for i, target := range opts.targets {
		own := opts
		own.seed += int64(i)
		plan := newPlan(own)
		attack, targeter := attacker(own, []string{target}, plan, vegeta.Workers(opts.closed), vegeta.MaxWorkers(opts.closed))
		all.Add(1)
		go func() {
			defer all.Done()
			for hit := range attack.Attack(targeter, vegeta.ConstantPacer{}, opts.duration, "") {
				mutex.Lock()
				out.add(hit, plan, 0, 0, i)
				mutex.Unlock()
			}
		}()
	}
	all.Wait()
	out.Seconds = time.Since(began).Seconds()
	out.Planned = len(out.Hits)
	return out
}

func (r *report) add(hit *vegeta.Result, plan *plan, lag, at time.Duration, target int) {
	long := longAsNumber(plan.isLong(hit.Seq))
	r.Hits = append(r.Hits, [7]int64{long, int64(hit.Code), lag.Microseconds(), (hit.Latency + lag).Microseconds(), at.Microseconds(), int64(target), int64(plan.edgeOf(hit.Seq))})
	if hit.Code == 0 || hit.Code >= 400 {
		r.Errors[hit.Error]++
	}
}

// schedule is a vegeta.Pacer with given times. `began` is the start time of vegeta, known from the first call on.
type schedule struct {
	at    []time.Duration
	began time.Time
}

func (s *schedule) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	if s.began.IsZero() {
		s.began = time.Now().Add(-elapsed)
	}
	if hits >= uint64(len(s.at)) {
		return 0, true
	}
	return max(0, s.at[hits]-elapsed), false
}

func (s *schedule) Rate(time.Duration) float64 {
	last := s.at[len(s.at)-1].Seconds()
	return float64(len(s.at)) / math.Max(last, 1e-9)
}
