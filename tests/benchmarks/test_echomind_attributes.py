from collections import Counter

from benchmarks.echomind_attributes import ATTRIBUTES


def test_labels_fall_into_three_coarse_and_twelve_fine_dimensions() -> None:
    coarse = Counter(attribute.coarse for attribute in ATTRIBUTES.values())
    assert coarse == {"speaker": 5, "paralinguistic": 19, "environment": 21}
    assert len({(attribute.coarse, attribute.fine) for attribute in ATTRIBUTES.values()}) == 12


def test_background_sounds_are_those_of_the_release() -> None:
    sounds = {label for label, attribute in ATTRIBUTES.items() if attribute.coarse == "environment"}
    names = (
        "wind blowing, thunderstorm and thunder, raining, driving a car, subway, sea waves, playing basketball, "
        "applause from a crowd, crowd cheering, crowd's chatter, children playing, children speaking, dog(s) barking, "
        "alarm clock ringing, ringtone, happy music, funny music, sad music, exciting music, angry music, "
        "vehicle honking"
    )
    assert sounds == {f"sound of {name}" for name in names.split(", ")}


def test_short_names_are_unique() -> None:
    assert len({attribute.name for attribute in ATTRIBUTES.values()}) == len(ATTRIBUTES)


def test_long_labels_have_the_names_of_the_release() -> None:
    label = "breathless sound / gasping sound / heavy breathing sound"
    assert (ATTRIBUTES[label].name, ATTRIBUTES[label].fine) == ("breath", "physiological_state")
    assert ATTRIBUTES["vocal fatigue"].name == "tired"
    assert ATTRIBUTES["sound of dog(s) barking"].fine == "others"
    assert ATTRIBUTES["sound of crowd's chatter"].coarse == "environment"
