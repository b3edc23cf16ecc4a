// Compares versions of CustomResourceDefinitions with crdify under the settings of OLM v1 (operator-controller, package
// crdupgradesafety), as the oracle for `bundle diff`.
//
// Each line of standard input is a JSON array of two CustomResourceDefinitions, the older one first. The answer is a line with
// a sorted array of texts `VERSION PROPERTY RULE`. A field that was removed with all fields in it is named once.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

// Settings of operator-controller v1.11.0.
var settings = &config.Config{
	Conversion:           config.ConversionPolicyIgnore,
	UnhandledEnforcement: config.EnforcementPolicyError,
	Validations: []config.ValidationConfig{
		{Name: "description", Enforcement: config.EnforcementPolicyNone},
		{
			Name:          "enum",
			Enforcement:   config.EnforcementPolicyError,
			Configuration: map[string]any{"additionPolicy": property.AdditionPolicyAllow},
		},
	},
}

func main() {
	checks, err := runner.New(settings, runner.DefaultRegistry())
	if err != nil {
		panic(err)
	}
	lines, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for lines.More() {
		var pair [2]apiextensionsv1.CustomResourceDefinition
		if err := lines.Decode(&pair); err != nil {
			panic(err)
		}
		// A bundle lacks the status. In the cluster, the version that is written is stored for certain.
		for _, one := range pair[0].Spec.Versions {
			if one.Storage {
				pair[0].Status.StoredVersions = append(pair[0].Status.StoredVersions, one.Name)
			}
		}
		if err := answers.Encode(findings(checks.Run(&pair[0], &pair[1]))); err != nil {
			panic(err)
		}
	}
}

func findings(results *runner.Results) []string {
	found := []string{}
	removed := map[string]bool{}
	for _, result := range results.CRDValidation {
		for _, message := range result.Errors {
			if result.Name != "existingFieldRemoval" {
				found = append(found, fmt.Sprintf("- - %s", result.Name))
				continue
			}
			// "removed field : v1.^.spec.a"
			_, field, _ := strings.Cut(message, " : ")
			removed[strings.Replace(field, ".", " ", 1)] = true
		}
	}
	for field := range removed {
		if !isInside(field, removed) {
			found = append(found, field+" existingFieldRemoval")
		}
	}
	for _, one := range slices.Concat(results.SameVersionValidation, results.ServedVersionValidation) {
		for _, changed := range one.PropertyComparisons {
			field := one.Version + " " + changed.Property
			for _, result := range changed.ComparisonResults {
				// A field that is gone is compared with nothing.
				if !removed[field] && len(result.Errors) > 0 {
					found = append(found, field+" "+result.Name)
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// isInside tells whether a field is below one that was removed.
func isInside(field string, removed map[string]bool) bool {
	for other := range removed {
		if strings.HasPrefix(field, other+".") || strings.HasPrefix(field, other+"[") {
			return true
		}
	}
	return false
}
