// Package scenarios has the scenario files: their format, the loader, the writer,
// and the files that come with the program. Which locks there are says
// scenarios/subject; scenarios/play runs and judges a scenario.
package scenarios
