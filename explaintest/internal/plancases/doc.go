// Package plancases has statements whose plans are known, with the rules that these plans keep and break. The tests of
// explaintest hold the rules to plans that servers of each major gave once, those of pgxplan to what a server gives now.
package plancases
