package bench

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// machine describes the machine, one fact per line.
func machine() []string {
	cores := "1 core"
	if n := runtime.NumCPU(); n > 1 {
		cores = strconv.Itoa(n) + " cores"
	}
	return []string{
		"processor: " + processor() + ", " + cores,
		"Go: " + strings.TrimPrefix(runtime.Version(), "go") + " " + runtime.GOOS + "/" + runtime.GOARCH,
		"redis-server: " + firstLine("redis-server", "--version"),
		"Java: " + firstLine("java", "-version"),
	}
}

// processor returns the name of the processor that the system reports.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return "unknown"
}

// firstLine returns the first line that a program prints, or "none" if there is no
// such program.
func firstLine(program string, args ...string) string {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return "none"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

// load returns the average number of processes that want a processor, over the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
