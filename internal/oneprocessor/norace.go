//go:build !race

package oneprocessor

const underRaceDetector = false
