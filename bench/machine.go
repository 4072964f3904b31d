package bench

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// machine is what was measured on, a line each.
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

// processor is the model as the system has it.
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

// firstLine is what a program says of itself, "none" where there is no such
// program.
func firstLine(program string, args ...string) string {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return "none"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

// load is how many processes want a processor, over the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
